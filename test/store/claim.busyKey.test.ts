import { Client } from 'pg';
import { openClaimStore, type ClaimStore } from '../../store/claimStore';
import type { ClaimRequest } from '../../store/request';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { LEASE_OVER } from '../support/timePassed';
import { aCopyOf, anOutcome, anOwner, aRequest, changeRow, inShort, ownershipOf, rowOf, settingsFor } from './support/claims';

/** Another session holds a key of ours and has not finished: we wait a bounded time, then say so, for that item alone. */

let database: TestDatabase;
/** Waits 800 ms for a lock. */
let store: ClaimStore;
/** The other session. */
let holder: Client;

beforeAll(async () => {
	database = await createTestDatabase();
	store = openClaimStore(settingsFor(database, { timeoutMs: 1000 }));
	await store.claim('claim', anOwner(), [aRequest()]);
});
afterAll(async () => {
	await store.close();
	await database.drop();
});
beforeEach(async () => {
	holder = new Client({ ...database });
	await holder.connect();
	await holder.query('BEGIN');
});
afterEach(async () => await holder.end());

/** The holder inserts this delivery as a claim of its own and does not commit. */
async function hold(request: ClaimRequest): Promise<void> {
	const { deliveryId, source, account, action, environment } = request.identity;
	await holder.query(
		`INSERT INTO idempotent_claims
			SELECT (jsonb_populate_record(claim, jsonb_build_object(
				'delivery_id', $1::text, 'source', $2::text, 'account', $3::text, 'action', $4::text, 'environment', $5::text, 'owner_token', 'of the holder'))).*
			  FROM idempotent_claims AS claim LIMIT 1`,
		[deliveryId, source, account, action, environment],
	);
}

/** Until a session of the store waits for a lock. */
async function somebodyWaits(): Promise<void> {
	while ((await sessionsThatWait()).length === 0);
}

async function sessionsThatWait(): Promise<unknown[]> {
	return await database.query(`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'n8n-nodes-idempotent-claim' AND wait_event_type = 'Lock'`);
}

const claim = async (requests: ClaimRequest[], by = store) => await by.claim('claim', anOwner(), requests);

test('an uncommitted insert of the same key: busy, certainly not claimed', async () => {
	const request = aRequest();
	await hold(request);
	const [answer] = await claim([request]);
	expect(answer).toMatchObject({ verdict: 'error', record: null, error: { kind: 'store_busy', sqlState: '55P03', retryable: true } });
	await holder.query('ROLLBACK');
	expect(await database.query('SELECT 1 FROM idempotent_claims WHERE delivery_id = $1', [request.identity.deliveryId])).toEqual([]);
});

test('in a batch only that item is busy', async () => {
	const requests = Array.from({ length: 20 }, () => aRequest());
	await hold(requests[7]);
	const answers = await claim(requests);
	expect(answers.map(inShort)).toEqual(requests.map((_, index) => (index === 7 ? 'error store_busy' : 'new first_delivery')));
});

test('a batch of several statements: what waits for the key does not keep the next ones', async () => {
	const requests = Array.from({ length: 1500 }, () => aRequest({ ownerToken: 'of the large batch' }));
	const [first] = [...requests].sort((a, b) => (a.identity.deliveryId < b.identity.deliveryId ? -1 : 1));
	await hold(first);
	const patient = openClaimStore(settingsFor(database, { timeoutMs: 60_000 }));
	const answers = claim(requests, patient);
	const stored = async () => await database.query(`SELECT 1 FROM idempotent_claims WHERE owner_token = 'of the large batch'`);
	while ((await stored()).length < 1000);
	expect(await sessionsThatWait()).toHaveLength(1);
	await holder.query('ROLLBACK');
	expect((await answers).map(inShort)).toEqual(requests.map(() => 'new first_delivery'));
	await patient.close();
});

test('once the other session rolled back, it is new', async () => {
	const request = aRequest();
	await hold(request);
	await claim([request]);
	await holder.query('ROLLBACK');
	expect((await claim([request])).map(inShort)).toEqual(['new first_delivery']);
});

test('once the other session committed, it is a duplicate', async () => {
	const request = aRequest();
	await hold(request);
	await claim([request]);
	await holder.query('COMMIT');
	expect((await claim([request])).map(inShort)).toEqual(['duplicate in_progress']);
	expect(await rowOf(database, request.identity)).toMatchObject({ owner_token: 'of the holder' });
});

describe('while a claim waits', () => {
	let patient: ClaimStore;
	beforeAll(() => (patient = openClaimStore(settingsFor(database, { timeoutMs: 60_000 }))));
	afterAll(async () => await patient.close());

	test.each([
		['ROLLBACK', 'read committed', 'new first_delivery'],
		['COMMIT', 'read committed', 'duplicate in_progress'],
		['ROLLBACK', 'repeatable read', 'new first_delivery'],
		// The server answers 40001: the statement is repeated with a snapshot that sees the row.
		['COMMIT', 'repeatable read', 'duplicate in_progress'],
		['COMMIT', 'serializable', 'duplicate in_progress'],
	])('the other session does %s (default isolation %s): %s', async (end, level, expected) => {
		await database.query(`ALTER ROLE ${database.user} IN DATABASE ${database.database} SET default_transaction_isolation = '${level}'`);
		const fresh = openClaimStore(settingsFor(database, { timeoutMs: 60_000 }));
		const request = aRequest();
		await hold(request);
		const answers = claim([request], fresh);
		await somebodyWaits();
		await holder.query(end);
		expect((await answers).map(inShort)).toEqual([expected]);
		await fresh.close();
		await database.query(`ALTER ROLE ${database.user} IN DATABASE ${database.database} RESET default_transaction_isolation`);
	});

	// The INSERT waits for whoever is changing the row; what comes between read and write: claim.movingRecord.test.ts.
	test('the owner extends its lease: it is not evicted', async () => {
		const first = aRequest({ whenLeaseExpires: 'takeOver' });
		await claim([first]);
		await changeRow(database, first.identity, LEASE_OVER);
		await holder.query(`UPDATE idempotent_claims SET lease_expires_at = now() + interval '1 hour' WHERE delivery_id = $1`, [first.identity.deliveryId]);
		const answers = claim([aCopyOf(first)], patient);
		await somebodyWaits();
		await holder.query('COMMIT');
		expect((await answers).map(inShort)).toEqual(['duplicate in_progress']);
		expect(await rowOf(database, first.identity)).toMatchObject({ owner_token: first.ownerToken, version: 1 });
	});

	test('the owner completes it: it is not called uncertain', async () => {
		const first = aRequest();
		await claim([first]);
		await changeRow(database, first.identity, LEASE_OVER);
		await holder.query(`UPDATE idempotent_claims SET state = 'completed', lease_expires_at = NULL WHERE delivery_id = $1`, [first.identity.deliveryId]);
		const answers = claim([aCopyOf(first)], patient);
		await somebodyWaits();
		await holder.query('COMMIT');
		expect((await answers).map(inShort)).toEqual(['duplicate completed']);
	});

	test('the record is purged: the claim is new', async () => {
		const first = aRequest({ whenLeaseExpires: 'takeOver' });
		await claim([first]);
		await changeRow(database, first.identity, LEASE_OVER);
		await holder.query('DELETE FROM idempotent_claims WHERE delivery_id = $1', [first.identity.deliveryId]);
		const answers = claim([aCopyOf(first)], patient);
		await somebodyWaits();
		await holder.query('COMMIT');
		expect((await answers).map(inShort)).toEqual(['new first_delivery']);
	});

	test('the claim is taken over: an outcome of the replaced owner is stale', async () => {
		const first = aRequest();
		const ownership = ownershipOf((await claim([first]))[0]);
		await holder.query(`UPDATE idempotent_claims SET owner_token = 'of the holder', version = 2 WHERE delivery_id = $1`, [first.identity.deliveryId]);
		const answers = patient.settle('completed', anOwner(), [anOutcome(ownership, { reference: 'lead-1' })]);
		await somebodyWaits();
		await holder.query('COMMIT');
		expect(await answers).toMatchObject([{ verdict: 'stale', reason: 'taken_over' }]);
		expect(await rowOf(database, first.identity)).toMatchObject({ state: 'processing', outcome_reference: null });
	});
});

// In one order for all processes: whoever comes second waits at the first shared key, and holds none of the others.
test('two batches of the same keys in opposite orders do not wait for each other', async () => {
	const requests = Array.from({ length: 5 }, () => aRequest());
	const ascending = requests.sort((a, b) => (a.identity.deliveryId < b.identity.deliveryId ? -1 : 1));
	await hold(ascending[2]);
	const patient = openClaimStore(settingsFor(database, { timeoutMs: 60_000 }));
	const answers = Promise.all([claim(ascending, patient), claim([...ascending].reverse().map((request) => aCopyOf(request)), patient)]);
	while ((await blockers()).length < 2);
	const [{ pid }] = (await holder.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows;
	expect((await blockers()).filter((blocker) => blocker === pid)).toHaveLength(1);

	await holder.query('ROLLBACK');
	const short = (await answers).flat().map(inShort);
	expect(short.filter((answer) => answer === 'new first_delivery')).toHaveLength(5);
	expect(short.filter((answer) => answer === 'duplicate in_progress')).toHaveLength(5);
	await patient.close();

	/** For each session of the store that waits for a lock: whom it waits for. */
	async function blockers(): Promise<number[]> {
		const rows = await database.query<{ blocker: number }>(
			`SELECT (pg_blocking_pids(pid))[1] AS blocker FROM pg_stat_activity
			  WHERE datname = current_database() AND application_name = 'n8n-nodes-idempotent-claim' AND wait_event_type = 'Lock'`,
		);
		return rows.map(({ blocker }) => blocker);
	}
});

test.each([1, 5])('twenty copies of a held key and twenty other deliveries, %d connections: only the copies are busy', async (maxConnections) => {
	const held = aRequest();
	await hold(held);
	const narrow = openClaimStore(settingsFor(database, { maxConnections, timeoutMs: 5000 }));
	const copies = Array.from({ length: 20 }, async () => (await claim([aCopyOf(held)], narrow))[0]);
	const others = Array.from({ length: 20 }, async () => (await claim([aRequest()], narrow))[0]);
	expect((await Promise.all(others)).map(inShort)).toEqual(others.map(() => 'new first_delivery'));
	for (const copy of await Promise.all(copies)) expect(copy).toMatchObject({ verdict: 'error', error: { kind: 'store_busy' } });
	await holder.query('ROLLBACK');
	expect((await claim([held], narrow)).map(inShort)).toEqual(['new first_delivery']);
	await narrow.close();
});

test('somebody holds the whole table: in doubt, and no session stays behind that waits for it', async () => {
	const [request, later] = [aRequest(), aRequest()];
	await holder.query('LOCK TABLE idempotent_claims');
	expect((await claim([request])).map(inShort)).toEqual(['error outcome_unknown']);
	while ((await sessionsThatWait()).length > 0);
	await holder.query('ROLLBACK');
	expect((await claim([request, later])).map(inShort)).toEqual(['new first_delivery', 'new first_delivery']);
	expect(await rowOf(database, request.identity)).toMatchObject({ owner_token: request.ownerToken, version: 1 });
});

test('an outcome of a row that another session holds: busy, and its neighbours are recorded', async () => {
	const requests = [aRequest(), aRequest(), aRequest()];
	const outcomes = (await claim(requests)).map((answer) => anOutcome(ownershipOf(answer)));
	await holder.query('SELECT FROM idempotent_claims WHERE delivery_id = $1 FOR UPDATE', [requests[1].identity.deliveryId]);
	const answers = await store.settle('completed', anOwner(), outcomes);
	expect(answers.map(({ verdict }) => verdict)).toEqual(['recorded', 'error', 'recorded']);
	expect(answers[1]).toMatchObject({ error: { kind: 'store_busy', sqlState: '55P03' } });
});

test('a takeover of a row that another session holds: busy, and its neighbours are taken over', async () => {
	const requests = [aRequest(), aRequest(), aRequest()].map((request) => ({ ...request, whenLeaseExpires: 'takeOver' as const }));
	await claim(requests);
	for (const { identity } of requests) await changeRow(database, identity, LEASE_OVER);
	await holder.query('SELECT FROM idempotent_claims WHERE delivery_id = $1 FOR UPDATE', [requests[1].identity.deliveryId]);
	const answers = await claim(requests.map((request) => aCopyOf(request)));
	expect(answers.map(inShort)).toEqual(['new lease_expired', 'error store_busy', 'new lease_expired']);
});
