import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { Client } from 'pg';
import type { ClaimStoreCredential } from '../../store/connection/settings';
import { CLAIM_TABLE, type TableDefinition } from '../../store/table/claimTable';
import { settingsFor } from '../store/support/claims';
import { createTestDatabase, type TestDatabase } from '../support/database';
import type { FirstAnswers, FirstClaims } from './support/firstClaimWorker';
import { shippedSql } from './support/site';

/** Twenty processes make their first claim at the same moment: all of them work, whatever has to be made first. */

jest.setTimeout(120_000);

const PROCESSES = 20;
let processes: ChildProcess[];
let database: TestDatabase;

beforeAll(async () => {
	processes = Array.from({ length: PROCESSES }, () => fork(path.join(__dirname, 'support/firstClaimWorker.ts'), { execArgv: ['--import', require.resolve('tsx')] }));
	await Promise.all(processes.map(async (process) => await reply(process)));
});
beforeEach(async () => {
	database = await createTestDatabase();
});
afterEach(async () => await database.drop());
afterAll(async () => {
	await Promise.all(
		processes.map(async (process) => {
			const ended = once(process, 'exit');
			process.disconnect();
			await ended;
		}),
	);
});

async function reply(process: ChildProcess): Promise<unknown> {
	const [message] = (await Promise.race([
		once(process, 'message'),
		once(process, 'exit').then(([code]) => Promise.reject(new Error(`A process ended with ${code}`))),
	])) as [unknown];
	return message;
}

let rounds = 0;

/** All processes at once. Each has a delivery of its own, and all have one in common. */
async function allClaim({ credential = {}, definitionOf = () => CLAIM_TABLE }: { credential?: ClaimStoreCredential; definitionOf?: (index: number) => TableDefinition } = {}): Promise<FirstAnswers[]> {
	rounds++;
	const settings = settingsFor(database, { maxConnections: 2, ...credential });
	return await Promise.all(
		processes.map(async (process, index) => {
			const answer = reply(process) as Promise<FirstAnswers>;
			const order: FirstClaims = { settings, definition: definitionOf(index), own: `own-${rounds}-${index}`, shared: `shared-${rounds}` };
			process.send(order);
			return await answer;
		}),
	);
}

/** Every own delivery is new, the shared one is new once, and the table holds them all. */
async function expectAllWorked(answers: FirstAnswers[]): Promise<void> {
	expect(answers.map(([own]) => own)).toEqual(Array(PROCESSES).fill('new first_delivery'));
	expect(answers.map(([, shared]) => shared).sort()).toEqual([...Array<string>(PROCESSES - 1).fill('duplicate in_progress'), 'new first_delivery']);
	expect(await database.query('SELECT count(*)::int AS count FROM idempotent_claims WHERE delivery_id LIKE $1 OR delivery_id LIKE $2', [`own-${rounds}-%`, `shared-${rounds}`])).toEqual([{ count: PROCESSES + 1 }]);
}

/** Holds the turn that processes take to make or upgrade the table until all of them wait for it. */
async function allAtTheDoor<T>(work: () => Promise<T>): Promise<T> {
	const holder = new Client({ ...database });
	await holder.connect();
	await holder.query('BEGIN');
	await holder.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', ['n8n-nodes-idempotent-claim, schema "public"."idempotent_claims"']);
	const done = work();
	while ((await database.query(`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`)).length < PROCESSES);
	await holder.query('COMMIT');
	await holder.end();
	return await done;
}

const version = async () => (await database.query<{ comment: string }>(`SELECT obj_description('idempotent_claims'::regclass, 'pg_class') AS comment`))[0].comment;

/** A package as it may be one day: a minor step on. */
const NEWER: TableDefinition = {
	...CLAIM_TABLE,
	version: { major: 1, minor: 1 },
	minorSteps: [{ to: { major: 1, minor: 1 }, sql: `ALTER TABLE :"schema".:"table" ADD COLUMN weight integer NOT NULL DEFAULT 1` }],
};

test('on an empty database', async () => {
	await expectAllWorked(await allClaim());
	await expectAllWorked(await allClaim());
});

test('on an empty database, all of them having seen that it is empty', async () => {
	await expectAllWorked(await allAtTheDoor(allClaim));
	expect(await database.query(`SELECT count(*)::int AS count FROM pg_tables WHERE schemaname = 'public'`)).toEqual([{ count: 1 }]);
});

test('on an empty database where every transaction is SERIALIZABLE', async () => {
	await database.query(`ALTER DATABASE ${database.database} SET default_transaction_isolation = 'serializable'`);
	await expectAllWorked(await allClaim());
});

test('ten of this version and ten of a newer one, on an empty database', async () => {
	await expectAllWorked(await allClaim({ definitionOf: (index) => (index % 2 === 0 ? CLAIM_TABLE : NEWER) }));
	expect(await version()).toBe('n8n-nodes-idempotent-claim, schema 1.1');
});

test('on a table that needs an upgrade: its step runs once', async () => {
	await database.query(shippedSql('idempotent_claims'));
	await expectAllWorked(await allAtTheDoor(async () => await allClaim({ definitionOf: () => NEWER })));
	expect(await version()).toBe('n8n-nodes-idempotent-claim, schema 1.1');
});

test('with Create Table off: refused until the table is there, then all work, none was restarted', async () => {
	const credential = { createTable: false };
	expect(await allClaim({ credential })).toEqual(Array(PROCESSES).fill(['error store_misconfigured', 'error store_misconfigured']));
	expect(await database.query(`SELECT count(*)::int AS count FROM pg_tables WHERE schemaname = 'public'`)).toEqual([{ count: 0 }]);
	await database.query(shippedSql('idempotent_claims'));
	await expectAllWorked(await allClaim({ credential }));
});
