import { answerEach, firstOfEach } from './batches';
import type { Doubt } from './connection/connection';
import { decideClaim, duplicateOfLive, type ClaimChange, type ClaimDecision, type DuplicateReason } from './decisions';
import { ClaimError, IF_IT_STAYS_SO, invalidSetting, outcomeUnknown, storedDifferently } from './errors';
import { identityText, type Identity } from './identity';
import type { ClaimReason, ClaimRecord, Operation, Owner } from './record';
import type { ClaimRequest } from './request';
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
 */
export async function claimDeliveries(table: ClaimTable, operation: Operation, owner: Owner, requests: readonly ClaimRequest[]): Promise<ClaimAnswer[]> {
	return await answerEach<ClaimRequest, ClaimAnswer>(requests, {
		key: identityOf,
		characters: ({ payload }) => payload.json?.length ?? 0,
		// Half, so that other keys are not kept waiting by those that wait for a lock.
		parallel: Math.floor(table.connection.settings.maxConnections / 2),
		together: async (portion, answers, doubt) => await claimTogether({ table, operation, owner, answers, doubt }, portion),
		failed: asError,
	});
}

function identityOf(request: ClaimRequest): string {
	return identityText(request.identity);
}

interface Work {
	table: ClaimTable;
	operation: Operation;
	owner: Owner;
	answers: Map<ClaimRequest, ClaimAnswer>;
	doubt: Doubt;
}

async function claimTogether(work: Work, portion: readonly ClaimRequest[]): Promise<void> {
	const { table, operation, owner, answers, doubt } = work;
	let open = await withoutLiveTwins(work, portion);
	const missing = new Set(open);

	for (let vain = 0; open.length > 0 && vain < MAX_VAIN_ROUNDS; ) {
		const before = answers.size;
		// Insert what no record was seen of: at first everything, later what was purged in between.
		const sent = firstOfEach(open.filter((request) => missing.has(request)), identityOf);
		const inserted = await insertClaims(table, operation, owner, sent, doubt);
		for (const request of sent) {
			const record = inserted.get(identityOf(request));
			if (record) answers.set(request, isOurs(record, request) ? { verdict: 'new', reason: 'first_delivery', record, payloadChanged: null } : asError(storedDifferently('this claim')));
		}
		open = open.filter((request) => !answers.has(request));

		const records = await readClaims(table, open.map(({ identity }) => identity));
		missing.clear();
		const changes = new Map<ClaimChange, Array<Pending>>();
		const moving = new Set<string>();
		for (const request of open) {
			// A repeat meets what its predecessor has made of the record.
			if (moving.has(identityOf(request))) continue;
			const record = records.get(identityOf(request));
			if (record === undefined) {
				missing.add(request);
				continue;
			}
			const decision = decideClaim(record, { operation, ownerToken: request.ownerToken, owner, takenAnewEachRun: request.takenAnewEachRun });
			const startsOver = decision.verdict !== 'misuse' && decision.change === 'startOver';
			if (!startsOver && refuseMismatch(record, request, answers)) continue;
			const payloadChanged = startsOver ? null : comparePayload(record, request);
			if (decision.verdict !== 'misuse' && decision.change !== null) {
				const pending = { seen: record, request, decision, payloadChanged };
				changes.set(decision.change, [...(changes.get(decision.change) ?? []), pending]);
				moving.add(identityOf(request));
			} else {
				answers.set(request, answerOf(decision, record, payloadChanged));
			}
		}
		for (const [change, pending] of changes) {
			const changed = await changeClaims(table, change, { operation, owner, doubt }, pending);
			for (const { seen, request, decision, payloadChanged } of pending) {
				const record = changed.get(seen.ownerToken);
				if (record) answers.set(request, decision.verdict !== 'new' || isOurs(record, request) ? answerOf(decision, record, payloadChanged) : asError(storedDifferently('this claim')));
			}
		}
		open = open.filter((request) => !answers.has(request));
		vain = answers.size > before ? 0 : vain + 1;
	}
	for (const request of open) {
		const error = doubt.inDoubt ? outcomeUnknown() : missing.has(request) ? swallowed() : movedTooOften();
		answers.set(request, asError(error));
	}
}

/** Whether the row that the database showed is this run's: its identity byte for byte, with its token. */
function isOurs(record: ClaimRecord, request: ClaimRequest): boolean {
	return record.ownerToken === request.ownerToken && identityText(record.identity) === identityOf(request);
}

function asError(error: ClaimError): ClaimAnswer {
	return { verdict: 'error', error, record: null, payloadChanged: null };
}

interface Pending {
	seen: ClaimRecord;
	request: ClaimRequest;
	decision: ClaimDecision;
	payloadChanged: boolean | null;
}

/** A test claim of an identity with a live record is a duplicate of that; what was done live is not done again. */
async function withoutLiveTwins({ table, answers }: Work, portion: readonly ClaimRequest[]): Promise<ClaimRequest[]> {
	const liveTwin = ({ identity }: ClaimRequest): Identity => ({ ...identity, environment: 'live' });
	const asking = portion.filter((request) => request.identity.environment === 'test' && !request.takenAnewEachRun);
	const records = await readClaims(table, asking.map(liveTwin));
	for (const request of asking) {
		const record = records.get(identityText(liveTwin(request)));
		if (record === undefined || refuseMismatch(record, request, answers)) continue;
		answers.set(request, { verdict: 'duplicate', reason: duplicateOfLive(record), record, payloadChanged: comparePayload(record, request) });
	}
	return portion.filter((request) => !answers.has(request));
}

function answerOf(decision: ClaimDecision, record: ClaimRecord, payloadChanged: boolean | null): ClaimAnswer {
	if (decision.verdict === 'misuse') return { verdict: 'error', error: claimedByAnotherNode(record), record, payloadChanged };
	// Two object literals, so that each verdict keeps its own set of reasons.
	if (decision.verdict === 'new') return { verdict: 'new', reason: decision.reason, record, payloadChanged };
	return { verdict: 'duplicate', reason: decision.reason, record, payloadChanged };
}

/** Where another content under a known ID is an error, says so; decided before anything is written. */
function refuseMismatch(record: ClaimRecord, request: ClaimRequest, answers: Work['answers']): boolean {
	const payloadChanged = comparePayload(record, request);
	if (payloadChanged !== true || request.payloadMismatch !== 'operationalError') return false;
	answers.set(request, { verdict: 'error', error: payloadMismatch(), record, payloadChanged });
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
