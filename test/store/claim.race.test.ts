import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { openClaimStore } from '../../store/claimStore';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { anIdentity, anOwner, aRequest, inShort, settingsFor } from './support/claims';
import type { RaceOrder, RaceReport } from './support/raceWorker';

/** Real processes claim the same keys at once: each key has one winner, and nobody gets an error. */

jest.setTimeout(180_000);

let database: TestDatabase;
beforeEach(async () => {
	database = await createTestDatabase();
});
afterEach(async () => await database.drop());

/** Starts all processes, and lets none insert before every one of them is about to. */
async function race(orders: RaceOrder[]): Promise<RaceReport[]> {
	const workers = orders.map(() => fork(path.join(__dirname, 'support/raceWorker.ts'), { execArgv: ['--import', require.resolve('tsx')] }));
	try {
		await Promise.all(workers.map(async (worker, index) => await ask(worker, orders[index])));
		await database.query('BEGIN');
		await database.query('LOCK TABLE idempotent_claims IN SHARE MODE');
		const reports = Promise.all(workers.map(async (worker) => (await ask(worker, 'go')) as RaceReport));
		// A process gathers its calls: one session of each is enough.
		while ((await waiting()) < orders.length);
		await database.query('COMMIT');
		return await reports;
	} finally {
		for (const worker of workers) worker.kill();
	}
}

/** Sessions that wait for the table. */
async function waiting(): Promise<number> {
	// Inside the transaction that holds the lock, the activity is a snapshot of the first look.
	await database.query('SELECT pg_stat_clear_snapshot()');
	const [{ count }] = await database.query<{ count: number }>(
		`SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
	);
	return count;
}

async function ask(worker: ChildProcess, message: object | string): Promise<unknown> {
	worker.send(message);
	const [answer] = (await Promise.race([
		once(worker, 'message'),
		once(worker, 'exit').then(([code]) => Promise.reject(new Error(`A process of the race ended with ${code}`))),
	])) as [unknown];
	return answer;
}

/** All answers of all processes, counted. */
function total(reports: RaceReport[]): Record<string, number> {
	const sum: Record<string, number> = {};
	for (const { answers } of reports) {
		for (const [answer, count] of Object.entries(answers)) sum[answer] = (sum[answer] ?? 0) + count;
	}
	return sum;
}

const keys = (count: number) => Array.from({ length: count }, (_, index) => `evt_${index}`);

/** The same keys in another order for each seed. */
function shuffled(items: string[], seed: number): string[] {
	const result = [...items];
	let state = seed + 1;
	for (let index = result.length - 1; index > 0; index--) {
		state = (state * 48_271) % 2_147_483_647;
		const other = state % (index + 1);
		[result[index], result[other]] = [result[other], result[index]];
	}
	return result;
}

function inCallsOf(size: number, items: string[]): string[][] {
	return Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size));
}

test('two processes race key by key in the same order', async () => {
	const settings = settingsFor(database);
	const calls = inCallsOf(1, keys(500));
	const reports = await race([1, 2].map(() => ({ settings, calls, parallel: 1 })));

	expect(total(reports)).toEqual({ 'new first_delivery': 500, 'duplicate in_progress': 500 });
	expect(reports.flatMap(({ winners }) => winners).sort()).toEqual(keys(500).sort());
});

test('two processes race with batches of the same keys in opposite orders', async () => {
	const settings = settingsFor(database);
	const batch = keys(2000);
	const reports = await race([
		{ settings, calls: [batch], parallel: 1 },
		{ settings, calls: [[...batch].reverse()], parallel: 1 },
	]);
	expect(total(reports)).toEqual({ 'new first_delivery': 2000, 'duplicate in_progress': 2000 });
});

test('8 processes × 10,000 claims over 1,000 keys: 1,000 winners, no error, no deadlock', async () => {
	const settings = settingsFor(database);
	const orders = Array.from({ length: 8 }, (_, process): RaceOrder => {
		const claims = Array.from({ length: 10 }, (_, round) => shuffled(keys(1000), process * 10 + round)).flat();
		// One key at a time, a few, and many.
		const calls = [...inCallsOf(1, claims.slice(0, 2000)), ...inCallsOf(7, claims.slice(2000, 5000)), ...inCallsOf(500, claims.slice(5000))];
		return { settings, calls: shuffled(calls.map((_, index) => String(index)), process).map((index) => calls[Number(index)]), parallel: 4 };
	});
	const reports = await race(orders);

	expect(total(reports)).toEqual({ 'new first_delivery': 1000, 'duplicate in_progress': 79_000 });
	expect(new Set(reports.flatMap(({ winners }) => winners)).size).toBe(1000);
	expect(await database.query('SELECT count(*)::int AS rows, max(version) AS version FROM idempotent_claims')).toEqual([{ rows: 1000, version: 1 }]);
	const [{ deadlocks }] = await database.query<{ deadlocks: number }>('SELECT deadlocks::int AS deadlocks FROM pg_stat_database WHERE datname = current_database()');
	expect(deadlocks).toBe(0);
});

// The role's default turns the race into serialization failures, which are repeated.
test.each(['repeatable read', 'serializable'])('a race at %s as the database default has one winner per key and no error', async (level) => {
	await database.query(`ALTER DATABASE ${database.database} SET default_transaction_isolation = '${level}'`);
	const settings = settingsFor(database, { maxConnections: 20 });
	const stores = Array.from({ length: 4 }, () => openClaimStore(settings));
	// The table is there before the race (table.creation.test.ts races for it).
	await stores[0].claim('claim', anOwner(), [aRequest()]);
	const deliveries = keys(100);
	const answers = await Promise.all(
		deliveries.flatMap((deliveryId) =>
			stores.map(async (store) => await store.claim('claim', anOwner(), [aRequest({ identity: anIdentity({ deliveryId }) })])),
		),
	);
	const count: Record<string, number> = {};
	for (const answer of answers.flat()) count[inShort(answer)] = (count[inShort(answer)] ?? 0) + 1;
	expect(count).toEqual({ 'new first_delivery': 100, 'duplicate in_progress': 300 });
	await Promise.all(stores.map(async (store) => await store.close()));
});
