import { setTimeout as sleep } from 'node:timers/promises';
import { openClaimStore, type ClaimStore } from '../../store/claimStore';
import type { OutcomeKind } from '../../store/decisions';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { startProxy, type Proxy } from '../support/proxy';
import { LEASE_OVER } from '../support/timePassed';
import { aCopyOf, anOutcome, anOwner, aRequest, changeRow, inShort, ownershipOf, rowOf, settingsFor } from './support/claims';

/**
 * The line breaks at the worst moment: a statement was carried out and its answer is lost. A proxy between the
 * store and the server cuts it there.
 */

let database: TestDatabase;
let proxy: Proxy;
/** Goes through the proxy. */
let store: ClaimStore;
/** Does not. */
let direct: ClaimStore;

beforeAll(async () => {
	database = await createTestDatabase();
	direct = openClaimStore(settingsFor(database));
	await direct.claim('claim', anOwner(), [aRequest()]);
});
afterAll(async () => {
	await direct.close();
	await database.drop();
});
beforeEach(async () => {
	proxy = await startProxy(database);
	store = openClaimStore(throughProxy());
	// Connected and past the look at the table, so that what is cut is the statement under test.
	await store.openClaimsOf(anOwner());
});
afterEach(async () => {
	await store.close();
	await proxy.close();
});

const throughProxy = (changes = {}) => settingsFor(database, { host: proxy.host, port: proxy.port, timeoutMs: 1000, ...changes });
const owner = anOwner();

/** From this statement on nothing goes through any more: its answer is lost, and the server cannot be reached again. */
function loseAnswerAndServer(text: string): void {
	void proxy.loseAnswerTo(text).happened.then(async () => await proxy.refuse());
}

describe('the answer to the INSERT is lost', () => {
	test.each(['claim', 'receive', 'deduplicate'] as const)('%s is new, exactly once', async (operation) => {
		const request = aRequest();
		const lost = proxy.loseAnswerTo('INSERT INTO');
		const [answer] = await store.claim(operation, owner, [request]);
		await lost.happened;
		expect(answer).toMatchObject({ verdict: 'new', reason: 'first_delivery', record: { version: 1, ownerToken: request.ownerToken } });
		const row = await rowOf(database, request.identity);
		expect(row).toMatchObject({ version: 1, attempt: operation === 'receive' ? 0 : 1 });
		expect(row.history).toHaveLength(1);
		// Everybody else is a duplicate of it.
		expect((await direct.claim('receive', anOwner(), [aCopyOf(request)]))[0].verdict).toBe('duplicate');
	});

	test('in a batch: each item is new, repeats are repeats', async () => {
		const requests = Array.from({ length: 50 }, () => aRequest());
		proxy.loseAnswerTo('INSERT INTO');
		const answers = await store.claim('claim', owner, [...requests, aCopyOf(requests[0])]);
		expect(answers.map(inShort)).toEqual([...requests.map(() => 'new first_delivery'), 'duplicate in_progress']);
	});

	test('of a test claim that is taken anew at each run: not taken from itself', async () => {
		const first = aRequest({ takenAnewEachRun: true });
		const request = { ...first, identity: { ...first.identity, environment: 'test' as const } };
		proxy.loseAnswerTo('INSERT INTO');
		expect(await store.claim('claim', owner, [request])).toMatchObject([{ verdict: 'new', record: { version: 1 } }]);
	});

	test('and so is the server: outcome_unknown; the same token is new later', async () => {
		const request = aRequest();
		loseAnswerAndServer('INSERT INTO');
		const [answer] = await store.claim('claim', owner, [request]);
		expect(answer).toMatchObject({ verdict: 'error', error: { kind: 'outcome_unknown', retryable: true } });
		expect(await rowOf(database, request.identity)).toMatchObject({ owner_token: request.ownerToken });

		await proxy.forward();
		expect(await store.claim('claim', owner, [request])).toMatchObject([{ verdict: 'new', reason: 'first_delivery', record: { version: 1 } }]);
		expect((await store.claim('claim', anOwner(), [aCopyOf(request)])).map(inShort)).toEqual(['duplicate in_progress']);
	});

	test('and the server restarts: it is asked again once it is back', async () => {
		const patient = openClaimStore(throughProxy({ timeoutMs: 20_000 }));
		await patient.openClaimsOf(owner);
		const request = aRequest();
		loseAnswerAndServer('INSERT INTO');
		// Longer than all sendings that follow each other at once would take.
		const [answers] = await Promise.all([patient.claim('claim', owner, [request]), sleep(1500).then(async () => await proxy.forward())]);
		expect(answers).toMatchObject([{ verdict: 'new', reason: 'first_delivery', record: { version: 1 } }]);
		await patient.close();
	});

	// The second sending met our own row: from then on nothing but New is true, and nobody may say "certainly not claimed".
	test.each(['JOIN "', 'UPDATE "'])('and the server goes after the second sending (at %s): outcome_unknown, not a certain no', async (text) => {
		const request = aRequest();
		proxy.loseAnswerTo('INSERT INTO');
		void proxy.cutBefore(text).happened.then(async () => await proxy.refuse());
		const [answer] = await store.claim('claim', owner, [request]);
		expect(await rowOf(database, request.identity)).toMatchObject({ owner_token: request.ownerToken });
		expect(inShort(answer)).toBe('error outcome_unknown');
	});

	test('and another session holds the row when it is recognised: outcome_unknown, not a certain no', async () => {
		const request = aRequest();
		proxy.loseAnswerTo('INSERT INTO');
		const held = proxy.hold('JOIN "');
		const claims = store.claim('claim', owner, [request]);
		await held.happened;
		await database.query('BEGIN');
		await database.query('SELECT FROM idempotent_claims WHERE delivery_id = $1 FOR UPDATE', [request.identity.deliveryId]);
		held.release();
		const answers = await claims;
		await database.query('ROLLBACK');
		expect(answers.map(inShort)).toEqual(['error outcome_unknown']);
	});
});

test('the line is cut before the INSERT reaches the server: new', async () => {
	const request = aRequest();
	const cut = proxy.cutBefore('INSERT INTO');
	expect(await store.claim('claim', owner, [request])).toMatchObject([{ verdict: 'new', record: { version: 1 } }]);
	await cut.happened;
});

test('the line is cut before the INSERT, and another execution claims meanwhile: a duplicate of that', async () => {
	const request = aRequest();
	const held = proxy.hold('INSERT INTO');
	const answer = store.claim('claim', owner, [request]);
	await held.happened;
	await direct.claim('claim', anOwner(), [aCopyOf(request)]);
	await proxy.cutAll();
	expect((await answer).map(inShort)).toEqual(['duplicate in_progress']);
	held.release();
});

test('a statement that is held up somewhere and lands after it was given up is recognised', async () => {
	const request = aRequest();
	const held = proxy.hold('INSERT INTO');
	const claims = store.claim('claim', owner, [request]);
	await held.happened;
	// The second sending claims; the first one lands afterwards and changes nothing.
	expect((await claims).map(inShort)).toEqual(['new first_delivery']);
	held.release();
	expect(await store.claim('claim', owner, [request])).toMatchObject([{ verdict: 'new', record: { version: 1 } }]);
});

describe('the answer to a takeover is lost', () => {
	async function expired() {
		const first = aRequest({ whenLeaseExpires: 'takeOver' });
		await direct.claim('claim', anOwner(), [first]);
		await changeRow(database, first.identity, LEASE_OVER);
		return first;
	}

	test('it is ours, once', async () => {
		const first = await expired();
		const lost = proxy.loseAnswerTo('UPDATE "');
		const [answer] = await store.claim('claim', owner, [aCopyOf(first)]);
		await lost.happened;
		expect(answer).toMatchObject({ verdict: 'new', reason: 'lease_expired', record: { version: 2, attempt: 2 } });
		expect((await rowOf(database, first.identity)).history).toHaveLength(2);
	});

	test('and so is the server: outcome_unknown; the same token is new later', async () => {
		const first = await expired();
		const request = aCopyOf(first);
		loseAnswerAndServer('UPDATE "');
		expect((await store.claim('claim', owner, [request])).map(inShort)).toEqual(['error outcome_unknown']);
		await proxy.forward();
		expect(await store.claim('claim', owner, [request])).toMatchObject([{ verdict: 'new', reason: 'lease_expired', record: { version: 2, attempt: 2 } }]);
	});

	test('of a stored delivery', async () => {
		const first = aRequest();
		await direct.claim('receive', anOwner(), [first]);
		proxy.loseAnswerTo('UPDATE "');
		expect(await store.claim('claim', owner, [aCopyOf(first)])).toMatchObject([{ verdict: 'new', reason: 'received', record: { version: 2, attempt: 1 } }]);
	});
});

test('the answer to the note that a lease ended is lost: uncertain, noted once', async () => {
	const first = aRequest();
	await direct.claim('claim', anOwner(), [first]);
	await changeRow(database, first.identity, LEASE_OVER);
	proxy.loseAnswerTo('UPDATE "');
	expect((await store.claim('claim', owner, [aCopyOf(first)])).map(inShort)).toEqual(['duplicate outcome_uncertain']);
	expect((await rowOf(database, first.identity)).history).toHaveLength(2);
});

describe('the answer to an outcome is lost', () => {
	test.each<OutcomeKind>(['completed', 'noActionNeeded', 'retryableFailure', 'outcomeUncertain', 'needsReview', 'extendLease'])('%s: Recorded, once', async (outcome) => {
		const ownership = ownershipOf((await direct.claim('claim', owner, [aRequest()]))[0]);
		const lost = proxy.loseAnswerTo('UPDATE "');
		const [answer] = await store.settle(outcome, owner, [anOutcome(ownership, { reference: outcome === 'completed' ? 'lead-1' : null, reason: 'why', retryAfterSeconds: 0 })]);
		await lost.happened;
		expect(answer.verdict).toBe('recorded');
		expect((await rowOf(database, ownership.identity)).history).toHaveLength(outcome === 'extendLease' ? 1 : 2);
	});

	test('and so is the server: outcome_unknown; asked again it is Recorded', async () => {
		const ownership = ownershipOf((await direct.claim('claim', owner, [aRequest()]))[0]);
		const outcome = anOutcome(ownership, { reference: 'lead-1' });
		loseAnswerAndServer('UPDATE "');
		expect(await store.settle('completed', owner, [outcome])).toMatchObject([{ verdict: 'error', error: { kind: 'outcome_unknown' } }]);
		await proxy.forward();
		expect(await store.settle('completed', owner, [outcome])).toMatchObject([{ verdict: 'recorded' }]);
	});

	test('a stale reference whose answer is lost is noted once', async () => {
		const first = aRequest({ whenLeaseExpires: 'takeOver' });
		const old = ownershipOf((await direct.claim('claim', owner, [first]))[0]);
		await changeRow(database, first.identity, LEASE_OVER);
		await direct.claim('claim', anOwner(), [aCopyOf(first)]);
		proxy.loseAnswerTo('stale_claim');
		expect(await store.settle('completed', owner, [anOutcome(old, { reference: 'lead-1' })])).toMatchObject([{ verdict: 'stale', reason: 'taken_over' }]);
		expect((await rowOf(database, old.identity)).history.filter(({ reference }) => reference === 'lead-1')).toHaveLength(1);
	});
});

describe('a server that does not answer', () => {
	test('a client with an unanswered statement is destroyed, and the statement is sent on another one', async () => {
		const request = aRequest();
		const before = proxy.accepted;
		const swallowed = proxy.swallowAnswerTo('INSERT INTO');
		const claims = store.claim('claim', owner, [request]);
		await swallowed.happened;
		const [{ pid }] = await database.query<{ pid: number }>(
			`SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%INSERT INTO%' AND pid <> pg_backend_pid() ORDER BY query_start DESC LIMIT 1`,
		);
		expect((await claims).map(inShort)).toEqual(['new first_delivery']);
		expect(proxy.accepted).toBe(before + 1);
		// The server notices that the session's client is gone; a session that was kept would let this wait for ever.
		while ((await database.query('SELECT 1 FROM pg_stat_activity WHERE pid = $1', [pid])).length > 0);
	});

	test('reads are not in doubt: unreachable', async () => {
		proxy.goSilent();
		const failure = store.openClaimsOf(owner);
		await expect(failure).rejects.toMatchObject({ kind: 'store_unreachable' });
	});
});

test('one broken line is reason to distrust older ones: the next claim does not meet another dead one', async () => {
	// Two idle connections.
	await Promise.all([store.claim('claim', owner, [aRequest()]), store.claim('claim', owner, [aRequest()])]);
	const before = proxy.accepted;
	proxy.loseAnswerTo('INSERT INTO');
	expect((await store.claim('claim', owner, [aRequest()])).map(inShort)).toEqual(['new first_delivery']);
	expect((await store.claim('claim', owner, [aRequest()])).map(inShort)).toEqual(['new first_delivery']);
	expect(proxy.accepted).toBe(before + 1);
});
