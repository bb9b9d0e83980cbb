import type { ClaimStore } from '../../store/claimStore';
import type { OutcomeKind } from '../../store/decisions';
import type { TestDatabase } from '../support/database';
import { LEASE_OVER } from '../support/timePassed';
import { aCopyOf, anIdentity, anOutcome, anOwner, aRequest, changeRow, inShort, ownershipOf, rowOf } from './support/claims';
import { shareStore } from './support/sharedStore';

/** What is tried out in the editor stays apart from what senders deliver, except that done is done. */

let database: TestDatabase;
let store: ClaimStore;
shareStore((shared) => ({ database, store } = shared));

const claim = async (...requests: Array<ReturnType<typeof aRequest>>) => await store.claim('claim', anOwner(), requests);
const asTest = (request: ReturnType<typeof aRequest>, changes = {}) => aCopyOf(request, { identity: { ...request.identity, environment: 'test' }, ...changes });

describe('a test claim with a live twin', () => {
	test.each<[OutcomeKind | null, string]>([
		[null, 'duplicate in_progress'],
		['completed', 'duplicate completed'],
		['retryableFailure', 'duplicate retry_pending'],
		['outcomeUncertain', 'duplicate outcome_uncertain'],
		['needsReview', 'duplicate needs_review'],
	])('whose outcome is %s: %s', async (outcome, expected) => {
		const live = aRequest();
		const ownership = ownershipOf((await claim(live))[0]);
		if (outcome) await store.settle(outcome, anOwner(), [anOutcome(ownership, { retryAfterSeconds: 0 })]);
		const before = await rowOf(database, live.identity);

		const [answer] = await claim(asTest(live));
		expect(inShort(answer)).toBe(expected);
		expect(answer).toMatchObject({ record: { identity: live.identity } });
		expect(await rowOf(database, live.identity)).toEqual(before);
		expect(await database.query('SELECT environment FROM idempotent_claims WHERE delivery_id = $1', [live.identity.deliveryId])).toEqual([{ environment: 'live' }]);
	});

	test('that was received', async () => {
		const live = aRequest();
		await store.claim('receive', anOwner(), [live]);
		expect((await claim(asTest(live))).map(inShort)).toEqual(['duplicate received']);
	});

	test('whose lease is over: the live record stays as it is', async () => {
		const live = aRequest({ whenLeaseExpires: 'takeOver' });
		await claim(live);
		await changeRow(database, live.identity, LEASE_OVER);
		const before = await rowOf(database, live.identity);
		expect((await claim(asTest(live))).map(inShort)).toEqual(['duplicate in_progress']);
		expect(await rowOf(database, live.identity)).toEqual(before);
	});

	test('of another content is told so', async () => {
		const live = aRequest({ fingerprint: 'one' });
		await claim(live);
		expect(await claim(asTest(live, { fingerprint: 'two' }))).toMatchObject([{ verdict: 'duplicate', payloadChanged: true }]);
	});

	test('of another content is an error where the workflow wants one', async () => {
		const live = aRequest({ fingerprint: 'one' });
		await claim(live);
		expect((await claim(asTest(live, { fingerprint: 'two', payloadMismatch: 'operationalError' }))).map(inShort)).toEqual(['error payload_mismatch']);
	});

	test('in a batch stands beside ones without', async () => {
		const live = aRequest();
		await claim(live);
		const requests = [aRequest({ identity: anIdentity({ environment: 'test' }) }), asTest(live), aRequest()];
		expect((await claim(...requests)).map(inShort)).toEqual(['new first_delivery', 'duplicate in_progress', 'new first_delivery']);
	});
});

test('a live claim does not care about a test twin', async () => {
	const live = aRequest();
	expect((await claim(asTest(live))).map(inShort)).toEqual(['new first_delivery']);
	expect((await claim(live)).map(inShort)).toEqual(['new first_delivery']);
});

test('a test claim is a duplicate of an earlier test claim', async () => {
	const request = aRequest({ identity: anIdentity({ environment: 'test' }) });
	expect((await claim(request)).map(inShort)).toEqual(['new first_delivery']);
	expect((await claim(aCopyOf(request))).map(inShort)).toEqual(['duplicate in_progress']);
});

test('a test claim may be forgotten after its retention in any state', async () => {
	const request = aRequest({ identity: anIdentity({ environment: 'test' }), retentionDays: 2 });
	await claim(request);
	const row = await rowOf(database, request.identity);
	expect(Number(row.purge_after) - Number(row.first_seen_at)).toBeCloseTo(2 * 86_400_000, -3);
});

describe('taken anew at each run', () => {
	const anew = () => aRequest({ identity: anIdentity({ environment: 'test' }), takenAnewEachRun: true });

	test('is new again in another execution, as if never seen', async () => {
		const first = anew();
		const ownership = ownershipOf((await claim(first))[0]);
		await store.settle('completed', anOwner(), [anOutcome(ownership, { reference: 'lead-1' })]);

		const second = aCopyOf(first, { payload: { json: '{"try":2}', complete: true }, fingerprint: 'second', retentionDays: 9 });
		expect(await claim(second)).toMatchObject([{ verdict: 'new', reason: 'first_delivery', record: { version: 2, attempt: 1, state: 'processing', outcome: null } }]);
		const row = await rowOf(database, first.identity);
		expect(row).toMatchObject({ owner_token: second.ownerToken, payload: { try: 2 }, fingerprint: 'second', retention_days: 9 });
		expect(row.history.at(-1)).toMatchObject({ reason: 'new_test_run', version: 2 });
	});

	test('fences off the run before', async () => {
		const first = anew();
		const ownership = ownershipOf((await claim(first))[0]);
		await claim(aCopyOf(first));
		expect(await store.settle('completed', anOwner(), [anOutcome(ownership)])).toMatchObject([{ verdict: 'stale', reason: 'taken_over' }]);
	});

	test('still recognises its own claim', async () => {
		const owner = anOwner();
		const request = anew();
		await store.claim('claim', owner, [request]);
		expect(await store.claim('claim', owner, [request])).toMatchObject([{ verdict: 'new', record: { version: 1 } }]);
	});

	test('a repeat in the same run is a duplicate', async () => {
		const request = anew();
		expect((await claim(request, aCopyOf(request))).map(inShort)).toEqual(['new first_delivery', 'duplicate in_progress']);
	});

	test('does not look at a live twin, and leaves it alone', async () => {
		const live = aRequest();
		await claim(live);
		const before = await rowOf(database, live.identity);
		expect((await claim(asTest(live, { takenAnewEachRun: true }))).map(inShort)).toEqual(['new first_delivery']);
		expect(await rowOf(database, live.identity)).toEqual(before);
	});

	test.each(['receive', 'deduplicate'] as const)('with %s likewise', async (operation) => {
		const first = anew();
		expect((await store.claim(operation, anOwner(), [first])).map(inShort)).toEqual(['new first_delivery']);
		expect((await store.claim(operation, anOwner(), [aCopyOf(first)])).map(inShort)).toEqual(['new first_delivery']);
		expect(await rowOf(database, first.identity)).toMatchObject({ version: 2, state: operation === 'receive' ? 'received' : 'completed' });
	});

	test('with another content is new, not a mismatch: the run before does not count', async () => {
		const first = { ...anew(), fingerprint: 'one', payloadMismatch: 'operationalError' as const };
		await claim(first);
		expect((await claim(aCopyOf(first, { fingerprint: 'two' }))).map(inShort)).toEqual(['new first_delivery']);
	});

	// The option belongs to manual runs; a workflow that goes live with it must not repeat its actions.
	test('never applies to a live claim', async () => {
		const live = aRequest({ takenAnewEachRun: true });
		await claim(live);
		expect((await claim(aCopyOf(live))).map(inShort)).toEqual(['duplicate in_progress']);
	});
});
