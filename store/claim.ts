import { answerEach, firstOfEach, type Batch } from './batches';
import type { Doubt } from './connection/connection';
import { decideClaim, duplicateOfLive, type ClaimChange, type ClaimDecision, type DuplicateReason } from './decisions';
import { ClaimError, IF_IT_STAYS_SO, invalidSetting, outcomeUnknown, storedDifferently } from './errors';
import { identityText, type Identity } from './identity';
import type { ClaimReason, ClaimRecord } from './record';
import type { ClaimCall, ClaimRequest } from './request';
import { changeClaims } from './statements/changeClaims';
import { insertClaims } from './statements/insertClaims';
import { readClaims } from './statements/readClaims';
import type { ClaimTable } from './table/claimTable';

/**
 * What the store says to one delivery. `new` only when the database showed a row with this run's token,
 * `duplicate` only when it showed one with another; everything else is an error.
 */
export type ClaimAnswer =
	| { verdict: 'new'; reason: ClaimReason; record: ClaimRecord; payloadChanged: boolean | null }
	| { verdict: 'duplicate'; reason: DuplicateReason; record: ClaimRecord; payloadChanged: boolean | null }
	| { verdict: 'error'; error: ClaimError; record: ClaimRecord | null; payloadChanged: boolean | null };

/** How often claims are looked at in vain, because their records move between reading and writing. */
const MAX_VAIN_ROUNDS = 6;

/**
 * Claims deliveries: each gets exactly one answer, in input order; a repeat inside the list meets the first one's
 * record. Never throws: what fails is the answer of the items that it concerns.
 *
 * @param answers gets each answer as soon as it is known
 */
export async function claimDeliveries(table: ClaimTable, calls: readonly ClaimCall[], answers = new Map<ClaimCall, ClaimAnswer>()): Promise<ClaimAnswer[]> {
	const batch: Batch<ClaimCall, ClaimAnswer> = {
		key: identityOf,
		characters: ({ request }) => request.payload.json?.length ?? 0,
		// Half, so that other keys are not kept waiting by those that wait for a lock.
		parallel: Math.floor(table.connection.settings.maxConnections / 2),
		together: async (portion, found, doubt) => await claimTogether({ table, answers: found, doubt }, portion),
		failed: asError,
	};
	return await answerEach(calls, batch, answers);
}

function identityOf({ request }: ClaimCall): string {
	return identityText(request.identity);
}

interface Work {
	table: ClaimTable;
	answers: Map<ClaimCall, ClaimAnswer>;
	doubt: Doubt;
}

async function claimTogether(work: Work, portion: readonly ClaimCall[]): Promise<void> {
	const { table, answers, doubt } = work;
	let open = await withoutLiveTwins(work, portion);
	const missing = new Set(open);

	for (let vain = 0; open.length > 0 && vain < MAX_VAIN_ROUNDS; ) {
		const before = answers.size;
		// Insert what no record was seen of: at first everything, later what was purged in between.
		const sent = firstOfEach(open.filter((call) => missing.has(call)), identityOf);
		const inserted = await insertClaims(table, sent, doubt);
		for (const call of sent) {
			const record = inserted.get(identityOf(call));
			if (record) answers.set(call, isOurs(record, call) ? { verdict: 'new', reason: 'first_delivery', record, payloadChanged: null } : asError(storedDifferently('this claim')));
		}
		open = open.filter((call) => !answers.has(call));

		const records = await readClaims(table, open.map(({ request }) => request.identity));
		missing.clear();
		const changes = new Map<ClaimChange, Array<Pending>>();
		const moving = new Set<string>();
		for (const call of open) {
			// A repeat meets what its predecessor has made of the record.
			if (moving.has(identityOf(call))) continue;
			const record = records.get(identityOf(call));
			if (record === undefined) {
				missing.add(call);
				continue;
			}
			const { operation, owner, request } = call;
			const decision = decideClaim(record, { operation, ownerToken: request.ownerToken, owner, takenAnewEachRun: request.takenAnewEachRun });
			const startsOver = decision.verdict !== 'misuse' && decision.change === 'startOver';
			if (!startsOver && refuseMismatch(record, call, answers)) continue;
			const payloadChanged = startsOver ? null : comparePayload(record, request);
			if (decision.verdict !== 'misuse' && decision.change !== null) {
				const pending = { seen: record, call, decision, payloadChanged };
				changes.set(decision.change, [...(changes.get(decision.change) ?? []), pending]);
				moving.add(identityOf(call));
			} else {
				answers.set(call, answerOf(decision, record, payloadChanged));
			}
		}
		for (const [change, pending] of changes) {
			const changed = await changeClaims(table, change, pending, doubt);
			for (const { seen, call, decision, payloadChanged } of pending) {
				const record = changed.get(seen.ownerToken);
				if (record) answers.set(call, decision.verdict !== 'new' || isOurs(record, call) ? answerOf(decision, record, payloadChanged) : asError(storedDifferently('this claim')));
			}
		}
		open = open.filter((call) => !answers.has(call));
		vain = answers.size > before ? 0 : vain + 1;
	}
	for (const call of open) {
		const error = doubt.inDoubt ? outcomeUnknown() : missing.has(call) ? swallowed() : movedTooOften();
		answers.set(call, asError(error));
	}
}

/** Whether the row that the database showed is this run's: its identity byte for byte, with its token. */
function isOurs(record: ClaimRecord, call: ClaimCall): boolean {
	return record.ownerToken === call.request.ownerToken && identityText(record.identity) === identityOf(call);
}

function asError(error: ClaimError): ClaimAnswer {
	return { verdict: 'error', error, record: null, payloadChanged: null };
}

interface Pending {
	seen: ClaimRecord;
	call: ClaimCall;
	decision: ClaimDecision;
	payloadChanged: boolean | null;
}

/** A test claim of an identity with a live record is a duplicate of that; what was done live is not done again. */
async function withoutLiveTwins({ table, answers }: Work, portion: readonly ClaimCall[]): Promise<ClaimCall[]> {
	const liveTwin = ({ request: { identity } }: ClaimCall): Identity => ({ ...identity, environment: 'live' });
	const asking = portion.filter(({ request }) => request.identity.environment === 'test' && !request.takenAnewEachRun);
	const records = await readClaims(table, asking.map(liveTwin));
	for (const call of asking) {
		const record = records.get(identityText(liveTwin(call)));
		if (record === undefined || refuseMismatch(record, call, answers)) continue;
		answers.set(call, { verdict: 'duplicate', reason: duplicateOfLive(record), record, payloadChanged: comparePayload(record, call.request) });
	}
	return portion.filter((call) => !answers.has(call));
}

function answerOf(decision: ClaimDecision, record: ClaimRecord, payloadChanged: boolean | null): ClaimAnswer {
	if (decision.verdict === 'misuse') return { verdict: 'error', error: claimedByAnotherNode(record), record, payloadChanged };
	// Two object literals, so that each verdict keeps its own set of reasons.
	if (decision.verdict === 'new') return { verdict: 'new', reason: decision.reason, record, payloadChanged };
	return { verdict: 'duplicate', reason: decision.reason, record, payloadChanged };
}

/** Where another content under a known ID is an error, says so; decided before anything is written. */
function refuseMismatch(record: ClaimRecord, call: ClaimCall, answers: Work['answers']): boolean {
	const payloadChanged = comparePayload(record, call.request);
	if (payloadChanged !== true || call.request.payloadMismatch !== 'operationalError') return false;
	answers.set(call, { verdict: 'error', error: payloadMismatch(), record, payloadChanged });
	return true;
}

/** Whether the delivery differs from the first one; null when one of them has no fingerprint. */
function comparePayload(record: ClaimRecord, request: ClaimRequest): boolean | null {
	return record.fingerprint === null || request.fingerprint === null ? null : record.fingerprint !== request.fingerprint;
}

function payloadMismatch(): ClaimError {
	return new ClaimError('payload_mismatch', 'This delivery has the ID of an earlier one but another content', {
		hint: 'Look at both deliveries: the sender may reuse IDs, or the fingerprint may include something that changes at each retry.',
	});
}

function claimedByAnotherNode(record: ClaimRecord): ClaimError {
	return invalidSetting(
		`The node "${record.owner.nodeName}" of this same execution has claimed this delivery`,
		'Give each Idempotent Claim its own Action, so that each job of an event is claimed for itself.',
	);
}

function movedTooOften(): ClaimError {
	return new ClaimError('store_busy', 'The record changed each time it was to be written', { hint: `Nothing was written for this item; it can be tried again later. ${IF_IT_STAYS_SO}` });
}

function swallowed(): ClaimError {
	return new ClaimError('store_misconfigured', 'The claim was neither inserted nor found', {
		hint: 'A trigger, a rule or row-level security on the claim table hides or drops rows: remove it.',
	});
}
