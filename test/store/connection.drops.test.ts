import pg, { Client } from 'pg';
import { ClaimStore, openClaimStore, sharedClaimStore } from '../../store/claimStore';
import { Connection } from '../../store/connection/connection';
import type { ClaimRequest } from '../../store/request';
import { ClaimTable } from '../../store/table/claimTable';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { aCopyOf, anOutcome, anOwner, aRequest, inShort, ownershipOf, settingsFor } from './support/claims';

/** The pool of one credential: what drops it, how many connections it holds, and whose settings it must not depend on. */

let database: TestDatabase;
let store: ClaimStore;
let log: string[];

beforeEach(async () => {
	database = await createTestDatabase();
	log = [];
	store = openClaimStore(settingsFor(database, { maxConnections: 3 }), (line) => log.push(line));
	await store.claim('claim', anOwner(), [aRequest()]);
});
afterEach(async () => {
	await store.close();
	await database.drop();
});

const claim = async (...requests: ClaimRequest[]) => (await store.claim('claim', anOwner(), requests)).map(inShort);

const SESSIONS = `FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'n8n-nodes-idempotent-claim'`;

async function sessions(condition = 'true'): Promise<number> {
	return (await database.query<{ count: number }>(`SELECT count(*)::int AS count ${SESSIONS} AND ${condition}`))[0].count;
}

/** Another session that holds one delivery's key until it ends. */
async function holderOf(request: ReturnType<typeof aRequest>): Promise<Client> {
	const holder = new Client({ ...database });
	await holder.connect();
	await store.claim('claim', anOwner(), [request]);
	await holder.query('BEGIN');
	await holder.query('DELETE FROM idempotent_claims WHERE delivery_id = $1', [request.identity.deliveryId]);
	return holder;
}

async function untilWaiting(count: number): Promise<void> {
	while ((await sessions(`wait_event_type = 'Lock'`)) < count);
}

describe('the server ends a session', () => {
	test('that is idle: one line for the log, no secret in it, and the next claim works', async () => {
		expect(await sessions()).toBe(1);
		await database.query(`SELECT pg_terminate_backend(pid) ${SESSIONS}`);
		while (log.length === 0) await new Promise(setImmediate);
		expect(await claim(aRequest())).toEqual(['new first_delivery']);
		expect(log).toEqual([expect.stringContaining('An idle connection to the claim store was dropped (57P01)')]);
		for (const secret of [database.password, database.host, database.database]) expect(log.join()).not.toContain(secret);
	});

	test('that is idle, unnoticed until it is used', async () => {
		await database.query(`SELECT pg_terminate_backend(pid) ${SESSIONS}`);
		expect(await claim(aRequest())).toEqual(['new first_delivery']);
	});

	test('that is busy: the statement is sent again', async () => {
		const request = aRequest();
		const holder = await holderOf(request);
		const answer = claim(aCopyOf(request));
		await untilWaiting(1);
		await database.query(`SELECT pg_terminate_backend(pid) ${SESSIONS} AND wait_event_type = 'Lock'`);
		await holder.query('COMMIT');
		expect(await answer).toEqual(['new first_delivery']);
		await holder.end();
	});

	test('whose statement alone is cancelled: busy, nothing claimed', async () => {
		const request = aRequest();
		const holder = await holderOf(request);
		const answers = store.claim('claim', anOwner(), [aCopyOf(request)]);
		await untilWaiting(1);
		await database.query(`SELECT pg_cancel_backend(pid) ${SESSIONS} AND wait_event_type = 'Lock'`);
		expect(await answers).toMatchObject([{ verdict: 'error', error: { kind: 'store_busy', sqlState: '57014' } }]);
		await holder.end();
	});
});

describe('the number of connections', () => {
	test('never grows beyond the maximum, and the others wait their turn', async () => {
		const request = aRequest();
		const holder = await holderOf(request);
		// Ten executions with a held key, each in a statement of its own because it has two items: three sessions wait for the key, the rest for a connection.
		const answers = Promise.all(Array.from({ length: 10 }, async () => await claim(aCopyOf(request), aRequest())));
		await untilWaiting(3);
		expect(await sessions()).toBe(3);
		await holder.query('COMMIT');
		const short = (await answers).flat().sort();
		expect(short).toEqual([...Array<string>(9).fill('duplicate in_progress'), ...Array<string>(11).fill('new first_delivery')]);
		expect(await sessions()).toBe(3);
		await holder.end();
	});

	test('none free in time: busy, certainly not claimed', async () => {
		const request = aRequest();
		const connection = new Connection(settingsFor(database, { maxConnections: 1, timeoutMs: 300 }));
		const table = new ClaimTable(connection);
		await table.prepare();
		await connection.transaction(async () => {
			const answers = await new ClaimStore(table).claim('claim', anOwner(), [request]);
			expect(answers).toMatchObject([{ verdict: 'error', error: { kind: 'store_busy', message: expect.stringContaining('None of the 1 connections') as string } }]);
		});
		expect(await database.query('SELECT 1 FROM idempotent_claims WHERE delivery_id = $1', [request.identity.deliveryId])).toEqual([]);
		await connection.close();
	});
});

describe('one process', () => {
	test('has one store for equal settings, and another for others', async () => {
		const settings = () => settingsFor(database, { maxConnections: 2 });
		const one = sharedClaimStore(settings(), () => {});
		expect(sharedClaimStore(settings(), () => {})).toBe(one);
		const other = sharedClaimStore(settingsFor(database, { maxConnections: 2, table: 'other' }), () => {});
		expect(other).not.toBe(one);
		expect(sharedClaimStore(settings(), () => {})).toBe(one);
		await Promise.all([one.close(), other.close()]);
	});

	test("other packages' type parsers do not matter", async () => {
		const { builtins, getTypeParser, setTypeParser } = pg.types;
		const changed = [builtins.BOOL, builtins.INT4, builtins.JSON, builtins.JSONB, builtins.TIMESTAMPTZ, builtins.TEXT];
		const before = changed.map((type) => getTypeParser(type) as (value: string) => unknown);
		for (const type of changed) setTypeParser(type, () => 'changed by somebody else');
		try {
			const request = aRequest({ payload: { json: '{"a":1}', complete: true } });
			const [answer] = await store.claim('claim', anOwner(), [request]);
			const ownership = ownershipOf(answer);
			expect(answer).toMatchObject({ record: { version: 1, attempt: 1, payloadComplete: true, leaseOver: false, leaseExpiresAt: expect.stringMatching(/Z$/) as string } });
			await store.settle('completed', anOwner(), [anOutcome(ownership, { result: '{"b":[2]}', reference: 'lead-1' })]);
			expect(await store.claim('claim', anOwner(), [aCopyOf(request)])).toMatchObject([
				{ verdict: 'duplicate', record: { state: 'completed', payloadComplete: false, outcome: { reference: 'lead-1', result: { b: [2] } } } },
			]);
		} finally {
			changed.forEach((type, index) => setTypeParser(type, before[index]));
		}
	});
});

// Through a pooler in transaction mode, the next user of the session would inherit it.
test('the bounded wait does not stay behind in the session', async () => {
	const connection = new Connection(settingsFor(database, { maxConnections: 1 }));
	const single = new ClaimStore(new ClaimTable(connection));
	const request = aRequest();
	const ownership = ownershipOf((await single.claim('claim', anOwner(), [request]))[0]);
	await single.claim('claim', anOwner(), [request]);
	await single.settle('completed', anOwner(), [anOutcome(ownership)]);
	expect(await connection.send({ text: `SELECT current_setting('lock_timeout') AS lock_timeout`, values: [], writes: false })).toEqual([{ lock_timeout: '0' }]);
	await single.close();
});

describe("the session's settings do not matter", () => {
	test.each([
		`TimeZone TO 'Asia/Kathmandu'`,
		`DateStyle TO 'German, DMY'`,
		`search_path TO 'nowhere'`,
		`bytea_output TO 'escape'`,
		`statement_timeout TO '5s'`,
		`lock_timeout TO '1ms'`,
	])('%s', async (setting) => {
		await database.query(`ALTER DATABASE ${database.database} SET ${setting}`);
		const fresh = openClaimStore(settingsFor(database));
		const request = aRequest({ leaseSeconds: 300 });
		const [answer] = await fresh.claim('claim', anOwner(), [request]);
		const { record } = answer as { record: { leaseExpiresAt: string; firstSeenAt: string; leaseOver: boolean } };
		expect(Date.parse(record.leaseExpiresAt) - Date.parse(record.firstSeenAt)).toBeCloseTo(300_000, -3);
		expect(Math.abs(Date.parse(record.firstSeenAt) - Date.now())).toBeLessThan(60_000);
		expect((await fresh.claim('claim', anOwner(), [aCopyOf(request)])).map(inShort)).toEqual(['duplicate in_progress']);
		await fresh.close();
	});
});
