import { answerEach, firstOfEach } from './batches';
import { decideOutcome, type OutcomeKind, type StaleReason } from './decisions';
import type { Doubt } from './connection/connection';
import { ClaimError, IF_IT_STAYS_SO, outcomeUnknown, storedDifferently } from './errors';
import { identityText } from './identity';
import type { ClaimRecord, Owner } from './record';
import { noteStaleReferences, type StaleReference } from './statements/noteStaleReferences';
import { readClaims } from './statements/readClaims';
import { recordOutcomes, type OutcomeRequest } from './statements/recordOutcomes';
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
 */
export async function settleClaims(table: ClaimTable, outcome: OutcomeKind, caller: Owner, requests: readonly OutcomeRequest[]): Promise<OutcomeAnswer[]> {
	// Where nothing was to be done, nothing was created.
	const asked = outcome === 'noActionNeeded' ? requests.map((request) => ({ ...request, reference: null })) : requests;
	return await answerEach<OutcomeRequest, OutcomeAnswer>(asked, {
		key: identityOf,
		characters: ({ result }) => result?.length ?? 0,
		parallel: Math.floor(table.connection.settings.maxConnections / 2),
		together: async (portion, answers, doubt) => await settleTogether({ table, outcome, caller, answers, doubt }, portion),
		failed: (error) => ({ verdict: 'error', error }),
	});
}

function identityOf({ claim }: OutcomeRequest): string {
	return identityText(claim.identity);
}

interface Work {
	table: ClaimTable;
	outcome: OutcomeKind;
	caller: Owner;
	answers: Map<OutcomeRequest, OutcomeAnswer>;
	doubt: Doubt;
}

async function settleTogether({ table, outcome, caller, answers, doubt }: Work, portion: readonly OutcomeRequest[]): Promise<void> {
	let open = [...portion];
	for (let vain = 0; open.length > 0 && vain < MAX_VAIN_ROUNDS; ) {
		const before = answers.size;
		const asked = firstOfEach(open, identityOf);
		const recorded = await recordOutcomes(table, outcome, caller, asked, doubt);
		for (const request of asked) {
			const record = recorded.get(identityOf(request));
			if (record) answers.set(request, isRecorded(record, request, outcome) ? { verdict: 'recorded', record } : { verdict: 'error', error: storedDifferently('this outcome') });
		}
		open = open.filter((request) => !answers.has(request));

		const records = await readClaims(table, open.map(({ claim }) => claim.identity));
		const stale: Array<{ request: OutcomeRequest; answer: OutcomeAnswer }> = [];
		const references: StaleReference[] = [];
		const moving = new Set<string>();
		for (const request of open) {
			// A repeat meets what its predecessor has made of the record.
			if (moving.has(identityOf(request))) continue;
			const record = records.get(identityOf(request)) ?? null;
			const decision = decideOutcome(record, { ownerToken: request.claim.ownerToken, outcome, reference: request.reference });
			if (decision.answer === 'alreadyRecorded' && record) {
				answers.set(request, { verdict: 'recorded', record });
			} else if (decision.answer === 'stale') {
				stale.push({ request, answer: { verdict: 'stale', reason: decision.reason, record } });
				if (record && request.reference !== null) {
					references.push({ claim: request.claim, reference: request.reference, reason: 'stale_claim' });
					moving.add(identityOf(request));
				}
			} else {
				moving.add(identityOf(request));
			}
		}
		// Answered only once the evidence is kept: a caller that gets an error instead may ask again.
		await noteStaleReferences(table, caller, references);
		for (const { request, answer } of stale) answers.set(request, answer);
		open = open.filter((request) => !answers.has(request));
		vain = answers.size > before ? 0 : vain + 1;
	}
	for (const request of open) {
		const error = doubt.inDoubt ? outcomeUnknown() : new ClaimError('store_busy', 'The record changed each time the outcome was to be written', { hint: `Nothing was recorded by this item; run it again. ${IF_IT_STAYS_SO}` });
		answers.set(request, { verdict: 'error', error });
	}
}

/** Whether the row that the database showed says what was to be recorded. */
function isRecorded(record: ClaimRecord, { claim, reference }: OutcomeRequest, outcome: OutcomeKind): boolean {
	if (outcome === 'extendLease') return record.ownerToken === claim.ownerToken && record.leaseExpiresAt !== null && !record.leaseOver;
	return decideOutcome(record, { ownerToken: claim.ownerToken, outcome, reference }).answer === 'alreadyRecorded';
}
