import { answerEach, firstOfEach, type Batch } from './batches';
import { decideOutcome, type OutcomeKind, type StaleReason } from './decisions';
import type { Doubt } from './connection/connection';
import { ClaimError, IF_IT_STAYS_SO, outcomeUnknown, storedDifferently } from './errors';
import { identityText } from './identity';
import type { ClaimRecord } from './record';
import { noteStaleReferences, type StaleReference } from './statements/noteStaleReferences';
import { readClaims } from './statements/readClaims';
import { recordOutcomes, type OutcomeCall } from './statements/recordOutcomes';
import type { ClaimTable } from './table/claimTable';

/** What the store says to one outcome. */
export type OutcomeAnswer =
	| { verdict: 'recorded'; record: ClaimRecord }
	| { verdict: 'stale'; reason: StaleReason; record: ClaimRecord | null }
	| { verdict: 'error'; error: ClaimError };

/** How often outcomes are tried in vain, because their records move between writing and reading. */
const MAX_VAIN_ROUNDS = 6;

/**
 * Records outcomes of claims; each gets exactly one answer, in input order. Never throws: what fails is the answer
 * of the items that it concerns.
 *
 * @param answers gets each answer as soon as it is known
 */
export async function settleClaims(table: ClaimTable, outcome: OutcomeKind, calls: readonly OutcomeCall[], answers = new Map<OutcomeCall, OutcomeAnswer>()): Promise<OutcomeAnswer[]> {
	const batch: Batch<OutcomeCall, OutcomeAnswer> = {
		key: identityOf,
		characters: ({ request }) => request.result?.length ?? 0,
		parallel: Math.floor(table.connection.settings.maxConnections / 2),
		together: async (portion, found, doubt) => await settleTogether({ table, outcome, answers: found, doubt }, portion),
		failed: (error) => ({ verdict: 'error', error }),
	};
	return await answerEach(calls, batch, answers);
}

function identityOf({ request }: OutcomeCall): string {
	return identityText(request.claim.identity);
}

interface Work {
	table: ClaimTable;
	outcome: OutcomeKind;
	answers: Map<OutcomeCall, OutcomeAnswer>;
	doubt: Doubt;
}

async function settleTogether({ table, outcome, answers, doubt }: Work, portion: readonly OutcomeCall[]): Promise<void> {
	let open = [...portion];
	for (let vain = 0; open.length > 0 && vain < MAX_VAIN_ROUNDS; ) {
		const before = answers.size;
		const asked = firstOfEach(open, identityOf);
		const recorded = await recordOutcomes(table, outcome, asked, doubt);
		for (const call of asked) {
			const record = recorded.get(identityOf(call));
			if (record) answers.set(call, isRecorded(record, call.request, outcome) ? { verdict: 'recorded', record } : { verdict: 'error', error: storedDifferently('this outcome') });
		}
		open = open.filter((call) => !answers.has(call));

		const records = await readClaims(table, open.map(({ request }) => request.claim.identity));
		const stale: Array<{ call: OutcomeCall; answer: OutcomeAnswer }> = [];
		const references: StaleReference[] = [];
		const moving = new Set<string>();
		for (const call of open) {
			// A repeat meets what its predecessor has made of the record.
			if (moving.has(identityOf(call))) continue;
			const { caller, request } = call;
			const record = records.get(identityOf(call)) ?? null;
			const decision = decideOutcome(record, { ownerToken: request.claim.ownerToken, outcome, reference: request.reference });
			if (decision.answer === 'alreadyRecorded' && record) {
				answers.set(call, { verdict: 'recorded', record });
			} else if (decision.answer === 'stale') {
				stale.push({ call, answer: { verdict: 'stale', reason: decision.reason, record } });
				if (record && request.reference !== null) {
					references.push({ caller, claim: request.claim, reference: request.reference, reason: 'stale_claim' });
					moving.add(identityOf(call));
				}
			} else {
				moving.add(identityOf(call));
			}
		}
		// Answered only once the evidence is kept: a caller that gets an error instead may ask again.
		await noteStaleReferences(table, references);
		for (const { call, answer } of stale) answers.set(call, answer);
		open = open.filter((call) => !answers.has(call));
		vain = answers.size > before ? 0 : vain + 1;
	}
	for (const call of open) {
		const error = doubt.inDoubt ? outcomeUnknown() : new ClaimError('store_busy', 'The record changed each time the outcome was to be written', { hint: `Nothing was recorded by this item; run it again. ${IF_IT_STAYS_SO}` });
		answers.set(call, { verdict: 'error', error });
	}
}

/** Whether the row that the database showed says what was to be recorded. */
function isRecorded(record: ClaimRecord, { claim, reference }: OutcomeCall['request'], outcome: OutcomeKind): boolean {
	if (outcome === 'extendLease') return record.ownerToken === claim.ownerToken && record.leaseExpiresAt !== null && !record.leaseOver;
	return decideOutcome(record, { ownerToken: claim.ownerToken, outcome, reference }).answer === 'alreadyRecorded';
}
