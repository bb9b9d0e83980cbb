import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { Client, escapeIdentifier } from 'pg';
import { openClaimStore, type ClaimStore } from '../../store/claimStore';
import type { ClaimStoreCredential } from '../../store/connection/settings';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { aCopyOf, anOutcome, anOwner, aRequest, inShort, ownershipOf, settingsFor } from './support/claims';

/** The claim table comes into being: by itself on the first claim, or by a DBA with the SQL that is shipped. */

let database: TestDatabase;
const stores: ClaimStore[] = [];

beforeEach(async () => {
	database = await createTestDatabase();
});
afterEach(async () => {
	await Promise.all(stores.splice(0).map(async (store) => await store.close()));
	await database.drop();
});

function open(credential: ClaimStoreCredential = {}): ClaimStore {
	const store = openClaimStore(settingsFor(database, credential));
	stores.push(store);
	return store;
}

const claim = async (store: ClaimStore, request = aRequest()) => (await store.claim('claim', anOwner(), [request])).map(inShort);
const comment = async (table = 'idempotent_claims') =>
	(await database.query<{ comment: string }>(`SELECT obj_description(to_regclass($1), 'pg_class') AS comment`, [table]))[0].comment;

/** Claims, meets the claim, completes it, meets it again. */
async function works(store: ClaimStore): Promise<void> {
	const request = aRequest();
	const [answer] = await store.claim('claim', anOwner(), [request]);
	expect(inShort(answer)).toBe('new first_delivery');
	expect(await claim(store, aCopyOf(request))).toEqual(['duplicate in_progress']);
	expect(await store.settle('completed', anOwner(), [anOutcome(ownershipOf(answer), { reference: 'lead-1' })])).toMatchObject([{ verdict: 'recorded' }]);
	expect(await claim(store, aCopyOf(request))).toEqual(['duplicate completed']);
}

describe('by itself', () => {
	test('on the first claim, with its version on it', async () => {
		await works(open());
		expect(await comment()).toBe('n8n-nodes-idempotent-claim, schema 1.0');
	});

	test('identities are compared byte for byte, instants have a zone', async () => {
		await claim(open());
		const columns = await database.query<{ name: string; type: string; collation: string | null }>(
			`SELECT attname AS name, format_type(atttypid, atttypmod) AS type, collname AS collation
			   FROM pg_attribute LEFT JOIN pg_collation ON pg_collation.oid = attcollation
			  WHERE attrelid = 'idempotent_claims'::regclass AND attnum > 0`,
		);
		for (const { type, collation } of columns) {
			if (type === 'text') expect(collation).toBe('C');
			expect(type).not.toBe('timestamp without time zone');
		}
		const [{ key }] = await database.query<{ key: string }>(`SELECT pg_get_constraintdef(oid) AS key FROM pg_constraint WHERE conrelid = 'idempotent_claims'::regclass AND contype = 'p'`);
		expect(key).toBe('PRIMARY KEY (delivery_id, source, account, action, environment)');
	});

	test('twenty pools at once on an empty database all work', async () => {
		const request = aRequest();
		const answers = await Promise.all(Array.from({ length: 20 }, async () => await claim(open({ maxConnections: 2 }), aCopyOf(request))));
		expect(answers.flat().sort()).toEqual([...Array<string>(19).fill('duplicate in_progress'), 'new first_delivery']);
	});

	// The snapshot of such a transaction is taken before it waits for its turn: it would not see the table made meanwhile.
	test.each(['read committed', 'repeatable read', 'serializable'])('made by another process while this one waits for its turn (%s)', async (level) => {
		await database.query(`ALTER DATABASE ${database.database} SET default_transaction_isolation = '${level}'`);
		const other = new Client({ ...database });
		await other.connect();
		try {
			// Holds the turn, as a process that makes the table does.
			await other.query('BEGIN ISOLATION LEVEL READ COMMITTED');
			await other.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', ['n8n-nodes-idempotent-claim, schema "public"."idempotent_claims"']);
			const answer = claim(open());
			while ((await database.query(`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`)).length === 0);
			await other.query((await shippedSql()).replaceAll(':"schema".:"table"', 'public.idempotent_claims'));
			await other.query('COMMIT');
			expect(await answer).toEqual(['new first_delivery']);
		} finally {
			await other.end();
		}
	});

	test('two tables in one database do not share claims', async () => {
		const request = aRequest();
		expect(await claim(open({ table: 'one' }), request)).toEqual(['new first_delivery']);
		expect(await claim(open({ table: 'two' }), aCopyOf(request))).toEqual(['new first_delivery']);
	});

	// All earlier deliveries would be new, without anybody knowing.
	test('not anew when it is dropped under a running process; another one makes it', async () => {
		const store = open();
		await claim(store);
		await database.query('DROP TABLE idempotent_claims');
		const request = aRequest();
		expect(await claim(store, request)).toEqual(['error store_misconfigured']);
		expect(await claim(open(), request)).toEqual(['new first_delivery']);
		expect(await claim(store, aCopyOf(request))).toEqual(['duplicate in_progress']);
		expect(await comment()).toBe('n8n-nodes-idempotent-claim, schema 1.0');
	});

	test('once what hindered it is gone, without a restart', async () => {
		const store = open({ schema: 'later' });
		expect(await claim(store)).toEqual(['error store_misconfigured']);
		await database.query('CREATE SCHEMA later');
		expect(await claim(store)).toEqual(['new first_delivery']);
	});
});

describe('by a DBA', () => {
	const TABLE = { schema: 'Integration', table: 'claims-of-n8n' };
	let role: string;

	beforeEach(async () => {
		await database.query('CREATE SCHEMA "Integration"');
		role = `app_${database.database}`;
		await database.query(`CREATE ROLE ${role} LOGIN PASSWORD 'app'`);
	});
	afterEach(async () => {
		await Promise.all(stores.splice(0).map(async (store) => await store.close()));
		await database.query(`DROP OWNED BY ${role}`);
		await database.query(`DROP ROLE ${role}`);
	});

	async function grantWhatItSays(): Promise<void> {
		await database.query(`GRANT USAGE ON SCHEMA "Integration" TO ${role}`);
		await database.query(`GRANT SELECT, INSERT, UPDATE ON "Integration"."claims-of-n8n" TO ${role}`);
	}

	test.each([true, false])('with the shipped SQL and the rights that it names (Create Table: %s)', async (createTable) => {
		await runAsPsql(TABLE);
		await grantWhatItSays();
		await works(open({ ...TABLE, user: role, password: 'app', createTable }));
		expect(await comment('"Integration"."claims-of-n8n"')).toBe('n8n-nodes-idempotent-claim, schema 1.0');
	});

	test('is the same table as the one made by itself', async () => {
		await runAsPsql(TABLE);
		await claim(open());
		const shape = async (table: string) =>
			await database.query(
				`SELECT attname, format_type(atttypid, atttypmod), attnotnull, attcollation,
				        (SELECT array_agg(pg_get_constraintdef(oid) ORDER BY conname) FROM pg_constraint WHERE conrelid = attrelid AND attnum = ANY(conkey) AND contype = 'c') AS checks
				   FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 ORDER BY attnum`,
				[table],
			);
		expect(await shape('"Integration"."claims-of-n8n"')).toEqual(await shape('public.idempotent_claims'));
	});
});

async function shippedSql(): Promise<string> {
	return await readFile(path.join(__dirname, '../../store/table/claim-table.sql'), 'utf8');
}

/** Runs the shipped SQL with psql where there is one; otherwise with psql's way of putting names in. */
async function runAsPsql({ schema, table }: { schema: string; table: string }): Promise<void> {
	const folder = await mkdtemp(path.join(os.tmpdir(), 'claim-table-'));
	const file = path.join(folder, 'claim-table.sql');
	await writeFile(file, await shippedSql());
	const { host, port, user, password, database: name } = database;
	try {
		await promisify(execFile)('psql', ['-v', 'ON_ERROR_STOP=1', '-v', `schema=${schema}`, '-v', `table=${table}`, '-f', file], {
			env: { ...process.env, PGHOST: host, PGPORT: String(port), PGUSER: user, PGPASSWORD: password, PGDATABASE: name },
		});
	} catch (failure) {
		if ((failure as NodeJS.ErrnoException).code !== 'ENOENT') throw failure;
		const sql = (await shippedSql()).replaceAll(':"schema"', () => escapeIdentifier(schema)).replaceAll(':"table"', () => escapeIdentifier(table));
		await database.query(sql);
	} finally {
		await rm(folder, { recursive: true });
	}
}
