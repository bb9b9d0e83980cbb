import type { ClaimStore } from '../../store/claimStore';
import type { Ownership } from '../../store/handle';
import type { TestDatabase } from '../support/database';
import { LEASE_OVER } from '../support/timePassed';
import { aCopyOf, anOutcome, anOwner, aRequest, changeRow, inShort, ownershipOf, rowOf } from './support/claims';
import { shareStore } from './support/sharedStore';

/** What an outcome leaves in the record: backoff, evidence, payload, result, lease; and claims that are put back. */

let database: TestDatabase;
let store: ClaimStore;
shareStore((shared) => ({ database, store } = shared));

const caller = anOwner({ executionId: 'caller' });
const claim = async (changes = {}) => ownershipOf((await store.claim('claim', anOwner(), [aRequest(changes)]))[0]);

describe('backoff', () => {
	/** Seconds until a failure at this attempt is due again. */
	async function backoff(attempt: number, retryAfterSeconds: number): Promise<number> {
		const ownership = await claim({ maxAttempts: 10_000 });
		await changeRow(database, ownership.identity, `attempt = ${attempt}`);
		const [answer] = await store.settle('retryableFailure', caller, [anOutcome(ownership, { retryAfterSeconds })]);
		expect(answer.verdict).toBe('recorded');
		const row = await rowOf(database, ownership.identity);
		return (Number(row.retry_at) - Number(row.outcome_recorded_at)) / 1000;
	}

	test.each([
		[1, 60, 60],
		[2, 60, 120],
		[3, 60, 240],
		[5, 60, 960],
		[11, 60, 61_440],
		[12, 60, 86_400],
		[1, 0.5, 0.5],
		[1, 100_000, 86_400],
		[40, 60, 86_400],
		[60, 60, 86_400],
		[999, 1, 86_400],
		[5000, 1, 86_400],
		[60, 0, 0],
	])('attempt %i with %d s: due in %i s', async (attempt, retryAfterSeconds, due) => {
		// Each instant is the clock's, so they may be some milliseconds apart.
		expect(await backoff(attempt, retryAfterSeconds)).toBeCloseTo(due, 1);
	});

	test('0 is due at once', async () => {
		const first = aRequest();
		const ownership = ownershipOf((await store.claim('claim', anOwner(), [first]))[0]);
		await store.settle('retryableFailure', caller, [anOutcome(ownership, { retryAfterSeconds: 0 })]);
		expect((await store.claim('claim', anOwner(), [aCopyOf(first)])).map(inShort)).toEqual(['new retry']);
	});

	test('the attempts of one delivery end in review', async () => {
		const first = aRequest({ maxAttempts: 3 });
		const states: string[] = [];
		for (let attempt = 1; attempt <= 3; attempt++) {
			const ownership = ownershipOf((await store.claim('claim', anOwner(), [aCopyOf(first)]))[0]);
			const [answer] = await store.settle('retryableFailure', caller, [anOutcome(ownership, { retryAfterSeconds: 0, reason: `try ${attempt}` })]);
			states.push(answer.verdict === 'recorded' ? answer.record.state : answer.verdict);
		}
		expect(states).toEqual(['retryable_failure', 'retryable_failure', 'needs_review']);
		expect(await rowOf(database, first.identity)).toMatchObject({ attempt: 3, version: 3, retry_at: null, outcome_reason: 'try 3' });
		expect((await store.claim('claim', anOwner(), [aCopyOf(first)])).map(inShort)).toEqual(['duplicate needs_review']);
	});
});

describe("a stale call's reference", () => {
	async function replaced(): Promise<Ownership> {
		const first = aRequest({ whenLeaseExpires: 'takeOver' });
		const old = ownershipOf((await store.claim('claim', anOwner(), [first]))[0]);
		await changeRow(database, first.identity, LEASE_OVER);
		await store.claim('claim', anOwner(), [aCopyOf(first)]);
		return old;
	}

	test('is added to the history and changes nothing else', async () => {
		const old = await replaced();
		const before = await rowOf(database, old.identity);
		await store.settle('completed', caller, [anOutcome(old, { reference: 'lead-1' })]);
		const after = await rowOf(database, old.identity);
		expect({ ...after, history: before.history }).toEqual(before);
		expect(after.history.slice(before.history.length)).toEqual([
			expect.objectContaining({ state: 'processing', version: 1, reason: 'stale_claim', reference: 'lead-1', execution: 'caller' }),
		]);
	});

	test('once, however often it is said, each reference', async () => {
		const old = await replaced();
		const { length } = (await rowOf(database, old.identity)).history;
		const say = async (reference: string) => await store.settle('completed', caller, [anOutcome(old, { reference })]);
		await say('lead-1');
		await say('lead-1');
		await Promise.all([say('lead-2'), say('lead-2'), say('lead-1')]);
		const { history } = await rowOf(database, old.identity);
		expect(history.slice(length).map(({ reference }) => reference)).toEqual(['lead-1', 'lead-2']);
	});

	test('also of an owner who completed with another one before', async () => {
		const ownership = await claim();
		await store.settle('completed', caller, [anOutcome(ownership, { reference: 'lead-1' })]);
		expect(await store.settle('completed', caller, [anOutcome(ownership, { reference: 'lead-2' })])).toMatchObject([{ verdict: 'stale', reason: 'already_completed' }]);
		const row = await rowOf(database, ownership.identity);
		expect(row.outcome_reference).toBe('lead-1');
		expect(row.history.at(-1)).toMatchObject({ reason: 'stale_claim', reference: 'lead-2' });
	});

	test('none, nothing is added', async () => {
		const old = await replaced();
		const before = await rowOf(database, old.identity);
		await store.settle('completed', caller, [anOutcome(old)]);
		expect(await rowOf(database, old.identity)).toEqual(before);
	});
});

describe('a repeated outcome', () => {
	test.each([
		['completed', { reference: 'lead-1', result: '{"a":1}' }],
		['noActionNeeded', { reason: 'unsubscribed' }],
		// A reference has no place here; that it is given must not make the repeat another outcome.
		['noActionNeeded', { reference: 'lead-1', reason: 'unsubscribed' }],
		['retryableFailure', { reason: 'HTTP 500' }],
		['outcomeUncertain', { reason: 'timed out' }],
		['needsReview', { reason: 'odd' }],
	] as const)('%s %j is recorded once', async (outcome, changes) => {
		const ownership = await claim();
		const [first] = await store.settle(outcome, caller, [anOutcome(ownership, changes)]);
		const before = await rowOf(database, ownership.identity);
		const [second] = await store.settle(outcome, caller, [anOutcome(ownership, changes)]);
		expect(first.verdict).toBe('recorded');
		expect(second).toEqual(first);
		expect(await rowOf(database, ownership.identity)).toEqual(before);
	});

	test('noActionNeeded has no reference', async () => {
		const ownership = await claim();
		await store.settle('noActionNeeded', caller, [anOutcome(ownership, { reference: 'lead-1', reason: 'unsubscribed' })]);
		expect(await rowOf(database, ownership.identity)).toMatchObject({ state: 'completed', outcome_reference: null, outcome_reason: 'unsubscribed' });
	});

	test('several outcomes of one claim in one call apply in input order', async () => {
		const ownership = await claim();
		const answers = await store.settle('completed', caller, [anOutcome(ownership, { reference: 'lead-1' }), anOutcome(ownership, { reference: 'lead-2' }), anOutcome(ownership, { reference: 'lead-1' })]);
		expect(answers.map(({ verdict }) => verdict)).toEqual(['recorded', 'stale', 'recorded']);
		expect(await rowOf(database, ownership.identity)).toMatchObject({ outcome_reference: 'lead-1' });
	});
});

test('a result is handed to later duplicates as it was', async () => {
	const first = aRequest();
	const ownership = ownershipOf((await store.claim('claim', anOwner(), [first]))[0]);
	const result = { text: 'a\u0000b', nested: [1, null, { ä: '😀' }], big: 1e300 };
	await store.settle('completed', caller, [anOutcome(ownership, { result: JSON.stringify(result) })]);
	expect(await store.claim('claim', anOwner(), [aCopyOf(first)])).toMatchObject([{ verdict: 'duplicate', record: { outcome: { result } } }]);
});

describe('keepPayload', () => {
	const payload = { json: '{"lead":"Ada"}', complete: true };
	test.each(['completed', 'noActionNeeded'] as const)('keeps it after %s; otherwise it is dropped', async (outcome) => {
		const [kept, dropped] = [await claim({ payload }), await claim({ payload })];
		await store.settle(outcome, caller, [anOutcome(kept, { keepPayload: true }), anOutcome(dropped)]);
		expect(await rowOf(database, kept.identity)).toMatchObject({ payload: { lead: 'Ada' }, payload_complete: true });
		expect(await rowOf(database, dropped.identity)).toMatchObject({ payload: null, payload_complete: false });
	});

	test('does not make an incomplete one complete', async () => {
		const ownership = await claim({ payload: { ...payload, complete: false } });
		await store.settle('completed', caller, [anOutcome(ownership, { keepPayload: true })]);
		expect(await rowOf(database, ownership.identity)).toMatchObject({ payload: { lead: 'Ada' }, payload_complete: false });
	});
});

describe('extendLease', () => {
	test('gives a full lease and makes the calling execution the owner on record, without history', async () => {
		const ownership = await claim();
		const before = await rowOf(database, ownership.identity);
		await store.settle('extendLease', anOwner({ executionId: 'later', nodeId: 'n2', nodeName: 'Check' }), [anOutcome(ownership, { leaseSeconds: 900 })]);
		const after = await rowOf(database, ownership.identity);
		expect(after).toMatchObject({
			state: 'processing',
			owner_token: before.owner_token,
			version: 1,
			attempt: 1,
			owner_execution_id: 'later',
			owner_node_id: 'n2',
			owner_node_name: 'Check',
			history: before.history,
		});
		expect(Number(after.lease_expires_at) - Number(after.updated_at)).toBeCloseTo(900_000, -3);
		// How long the next own lease is stays the claim's setting.
		expect(after.lease_seconds).toBe(300);
	});

	test('inside the owning execution the claiming node stays the owner on record', async () => {
		const owner = anOwner({ nodeId: 'claiming', nodeName: 'Claim' });
		const request = aRequest();
		const ownership = ownershipOf((await store.claim('claim', owner, [request]))[0]);
		await store.settle('extendLease', { ...owner, nodeId: 'extending', nodeName: 'Extend' }, [anOutcome(ownership)]);
		expect(await rowOf(database, request.identity)).toMatchObject({ owner_node_id: 'claiming', owner_node_name: 'Claim' });
		// So a loop back to the claiming node is still told that it is its own work in progress.
		expect((await store.claim('claim', owner, [aCopyOf(request)])).map(inShort)).toEqual(['duplicate in_progress']);
	});

	test('rescues a lease that ran out but was not looked at', async () => {
		const first = aRequest({ whenLeaseExpires: 'takeOver' });
		const ownership = ownershipOf((await store.claim('claim', anOwner(), [first]))[0]);
		await changeRow(database, first.identity, LEASE_OVER);
		await store.settle('extendLease', caller, [anOutcome(ownership)]);
		expect((await store.claim('claim', anOwner(), [aCopyOf(first)])).map(inShort)).toEqual(['duplicate in_progress']);
	});
});

describe('what an execution has open', () => {
	test('is found by execution and instance, also after it extended a lease it inherited', async () => {
		const owner = anOwner();
		const [working, unsure, done, elsewhere] = (await store.claim('claim', owner, [aRequest(), aRequest(), aRequest(), aRequest()])).map(ownershipOf);
		await store.settle('outcomeUncertain', owner, [anOutcome(unsure)]);
		await store.settle('completed', owner, [anOutcome(done)]);
		await store.settle('extendLease', anOwner(), [anOutcome(elsewhere)]);
		await store.claim('claim', { ...owner, instanceId: 'another n8n' }, [aRequest()]);

		const ids = (records: Array<{ identity: { deliveryId: string } }>) => records.map(({ identity }) => identity.deliveryId).sort();
		expect(ids(await store.openClaimsOf(owner))).toEqual([working, unsure].map(({ identity }) => identity.deliveryId).sort());
		expect(ids(await store.claimsInProcessingOf(owner))).toEqual([working.identity.deliveryId]);
		expect(await store.openClaimsOf(anOwner())).toEqual([]);
	});
});

describe('claims that are put back', () => {
	test('are due at once for the next delivery', async () => {
		const first = aRequest({ payload: { json: '{"lead":"Ada"}', complete: true } });
		const owner = anOwner();
		const ownership = ownershipOf((await store.claim('claim', owner, [first]))[0]);
		await store.putBack(owner, [ownership], 'the run stops');
		const row = await rowOf(database, first.identity);
		expect(row).toMatchObject({ state: 'retryable_failure', lease_expires_at: null, outcome_reason: 'the run stops', payload: { lead: 'Ada' } });
		expect(row.history.at(-1)).toMatchObject({ state: 'retryable_failure', reason: 'put_back' });
		expect((await store.claim('claim', anOwner(), [aCopyOf(first)])).map(inShort)).toEqual(['new retry']);
	});

	test('of deduplicate are not remembered as done', async () => {
		const first = aRequest();
		const owner = anOwner();
		const ownership = ownershipOf((await store.claim('deduplicate', owner, [first]))[0]);
		await store.putBack(owner, [ownership], 'the run stops');
		expect(await rowOf(database, first.identity)).toMatchObject({ state: 'retryable_failure', purge_after: null });
		expect((await store.claim('deduplicate', anOwner(), [aCopyOf(first)])).map(inShort)).toEqual(['new retry']);
	});

	test('of receive wait already: they stay as they are', async () => {
		const first = aRequest();
		const ownership = ownershipOf((await store.claim('receive', anOwner(), [first]))[0]);
		await store.putBack(anOwner(), [ownership], 'the run stops');
		expect(await rowOf(database, first.identity)).toMatchObject({ state: 'received' });
	});

	test('must still be the caller\'s: another token or version is left alone', async () => {
		const ownership = await claim();
		const before = await rowOf(database, ownership.identity);
		await store.putBack(anOwner(), [{ ...ownership, ownerToken: 'another' }], 'the run stops');
		expect(await rowOf(database, ownership.identity)).toEqual(before);
	});

	// The action was not begun: the attempt does not count, or a delivery with one attempt could never run.
	test('have their attempt again', async () => {
		const first = aRequest({ maxAttempts: 1 });
		const owner = anOwner();
		const ownership = ownershipOf((await store.claim('claim', owner, [first]))[0]);
		await store.putBack(owner, [ownership], 'the run stops');
		expect((await store.claim('claim', anOwner(), [aCopyOf(first)])).map(inShort)).toEqual(['new retry']);
	});
});
