import { Client } from 'pg';
import { checkStore } from '../../store/check';
import { ClaimStore } from '../../store/claimStore';
import { Connection } from '../../store/connection/connection';
import type { ClaimStoreCredential } from '../../store/connection/settings';
import { CLAIM_TABLE, ClaimTable, type TableDefinition } from '../../store/table/claimTable';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { LEASE_OVER } from '../support/timePassed';
import { aCopyOf, anOutcome, anOwner, aRequest, changeRow, inShort, ownershipOf, settingsFor } from './support/claims';

/** Packages of several versions share one table: minor steps run by themselves, major ones never. */

let database: TestDatabase;
const stores: ClaimStore[] = [];

beforeEach(async () => {
	database = await createTestDatabase();
});
afterEach(async () => {
	await Promise.all(stores.splice(0).map(async (store) => await store.close()));
	await database.drop();
});

/** A package as it may be one day: two minor steps on. */
const NEWER: TableDefinition = {
	...CLAIM_TABLE,
	version: { major: 1, minor: 2 },
	minorSteps: [
		{ to: { major: 1, minor: 1 }, sql: 'ALTER TABLE :"schema".:"table" ADD COLUMN note text' },
		{ to: { major: 1, minor: 2 }, sql: `ALTER TABLE :"schema".:"table" ADD COLUMN weight integer NOT NULL DEFAULT 1` },
	],
};
/** The one before it. */
const BETWEEN: TableDefinition = { ...NEWER, version: { major: 1, minor: 1 }, minorSteps: NEWER.minorSteps.slice(0, 1) };

function open(definition: TableDefinition = CLAIM_TABLE, credential: ClaimStoreCredential = {}): ClaimStore {
	const store = new ClaimStore(new ClaimTable(new Connection(settingsFor(database, credential)), definition));
	stores.push(store);
	return store;
}

const claim = async (store: ClaimStore, request = aRequest()) => (await store.claim('claim', anOwner(), [request])).map(inShort);

async function version(): Promise<string | undefined> {
	const [{ comment }] = await database.query<{ comment: string | null }>(`SELECT obj_description('idempotent_claims'::regclass, 'pg_class') AS comment`);
	return comment?.replace('n8n-nodes-idempotent-claim, schema ', '');
}

async function addedColumns(): Promise<string[]> {
	const rows = await database.query<{ attname: string }>(
		`SELECT attname FROM pg_attribute WHERE attrelid = 'idempotent_claims'::regclass AND attname IN ('note', 'weight') AND NOT attisdropped ORDER BY attnum`,
	);
	return rows.map(({ attname }) => attname);
}

test('an empty database gets the newest version', async () => {
	expect(await claim(open(NEWER))).toEqual(['new first_delivery']);
	expect([await version(), await addedColumns()]).toEqual(['1.2', ['note', 'weight']]);
});

test.each([
	['1.0', CLAIM_TABLE],
	['1.1', BETWEEN],
])('a table of version %s gets the steps that it lacks; its claims stay', async (_version, definition) => {
	const request = aRequest();
	await claim(open(definition), request);
	expect(await claim(open(NEWER), aCopyOf(request))).toEqual(['duplicate in_progress']);
	expect([await version(), await addedColumns()]).toEqual(['1.2', ['note', 'weight']]);
});

test('ten processes upgrade at once: each step runs once, and all claim', async () => {
	await claim(open());
	const answers = await Promise.all(Array.from({ length: 10 }, async () => await claim(open(NEWER, { maxConnections: 2 }))));
	expect(answers.flat()).toEqual(Array(10).fill('new first_delivery'));
	expect([await version(), await addedColumns()]).toEqual(['1.2', ['note', 'weight']]);
});

// The lock is the transaction's: nothing stays locked in a session that a pooler hands on.
test('an upgrade waits for the process that has its turn, and then has nothing to do', async () => {
	await claim(open());
	const other = new Client({ ...database });
	await other.connect();
	await other.query('BEGIN');
	await other.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', ['n8n-nodes-idempotent-claim, schema "public"."idempotent_claims"']);
	const answer = claim(open(NEWER));
	while ((await database.query(`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`)).length === 0);
	for (const { sql } of NEWER.minorSteps) await other.query(sql.replace(':"schema".:"table"', 'idempotent_claims'));
	await other.query(`COMMENT ON TABLE idempotent_claims IS 'n8n-nodes-idempotent-claim, schema 1.2'`);
	await other.query('COMMIT');
	expect(await answer).toEqual(['new first_delivery']);
	expect(await database.query(`SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = database WHERE locktype = 'advisory' AND datname = current_database()`)).toEqual([]);
	await other.end();
});

test('an older package keeps working on a newer minor version, and leaves it as it is', async () => {
	const older = open();
	const request = aRequest();
	const [answer] = await older.claim('claim', anOwner(), [request]);
	await claim(open(NEWER));
	for (const store of [older, open()]) {
		expect(await claim(store)).toEqual(['new first_delivery']);
		expect(await claim(store, aCopyOf(request))).toEqual(['duplicate in_progress']);
	}
	expect(await older.settle('completed', anOwner(), [anOutcome(ownershipOf(answer))])).toMatchObject([{ verdict: 'recorded' }]);
	expect(await version()).toBe('1.2');
});

test('two package versions take turns on one table: each knows what the other claimed, and each completes its own', async () => {
	for (const [first, second] of [
		[CLAIM_TABLE, NEWER],
		[NEWER, CLAIM_TABLE],
		[BETWEEN, NEWER],
	]) {
		const packages = [open(first), open(second)];
		for (let turn = 0; turn < 6; turn++) {
			const [mine, other] = turn % 2 === 0 ? packages : [...packages].reverse();
			const request = aRequest({ whenLeaseExpires: 'takeOver' });
			const [answer] = await mine.claim('claim', anOwner(), [request]);
			const ownership = ownershipOf(answer);
			expect(await claim(other, aCopyOf(request))).toEqual(['duplicate in_progress']);
			if (turn >= 2) {
				// The other version takes it over; this one's outcome is too late.
				await changeRow(database, request.identity, LEASE_OVER);
				const [taken] = await other.claim('claim', anOwner(), [aCopyOf(request)]);
				expect(inShort(taken)).toBe('new lease_expired');
				expect(await mine.settle('completed', anOwner(), [anOutcome(ownership)])).toMatchObject([{ verdict: 'stale', reason: 'taken_over' }]);
				expect(await other.settle('completed', anOwner(), [anOutcome(ownershipOf(taken))])).toMatchObject([{ verdict: 'recorded' }]);
			} else {
				expect(await mine.settle('completed', anOwner(), [anOutcome(ownership)])).toMatchObject([{ verdict: 'recorded' }]);
			}
			for (const one of packages) expect(await claim(one, aCopyOf(request))).toEqual(['duplicate completed']);
		}
	}
	expect(await version()).toBe('1.2');
});

describe('the DBA owns the table, the package may only use it', () => {
	const PASSWORD = 'app-only';
	let role: string;
	beforeEach(async () => {
		role = `app_${database.database}`;
		await database.query(`CREATE ROLE ${role} LOGIN PASSWORD '${PASSWORD}'`);
		await claim(open());
		await database.query(`GRANT SELECT, INSERT, UPDATE ON idempotent_claims TO ${role}`);
	});
	afterEach(async () => {
		await Promise.all(stores.splice(0).map(async (store) => await store.close()));
		await database.query(`DROP OWNED BY ${role}`);
		await database.query(`DROP ROLE ${role}`);
	});

	test('an upgrade is due: refused, with who may make it; the credential test says the same before', async () => {
		const credential = { user: role, password: PASSWORD };
		const store = open(NEWER, credential);
		const { problems } = await checkStore(settingsFor(database, credential), undefined, NEWER);
		const [answer] = await store.claim('claim', anOwner(), [aRequest()]);
		if (answer.verdict !== 'error') throw new Error(inShort(answer));
		expect(answer.error).toMatchObject({ kind: 'store_denied', message: `The table "public"."idempotent_claims" has schema version 1.0, this package needs 1.2, and only its owner "${database.user}" may upgrade it` });
		expect(problems).toEqual([`${answer.error.message}. ${answer.error.hint}`]);
		expect(await version()).toBe('1.0');

		// As the hint says: a claim by the owner upgrades it.
		expect(await checkStore(settingsFor(database), undefined, NEWER)).toMatchObject({ problems: [], summary: expect.stringContaining('The next claim upgrades it.') as string });
		await claim(open(NEWER));
		expect(await claim(store)).toEqual(['new first_delivery']);
		expect(await checkStore(settingsFor(database, credential), undefined, NEWER)).toMatchObject({ problems: [], summary: expect.not.stringContaining('upgrades') as string });
	});

	test('a member of the owning role may upgrade it', async () => {
		await database.query(`CREATE ROLE keepers_${role}`);
		await database.query(`ALTER TABLE idempotent_claims OWNER TO keepers_${role}`);
		await database.query(`GRANT keepers_${role} TO ${role}`);
		try {
			expect(await claim(open(NEWER, { user: role, password: PASSWORD }))).toEqual(['new first_delivery']);
			expect(await version()).toBe('1.2');
		} finally {
			await database.query('DROP TABLE idempotent_claims');
			await database.query(`DROP ROLE keepers_${role}`);
		}
	});

	test('no upgrade is due: works', async () => {
		expect(await claim(open(CLAIM_TABLE, { user: role, password: PASSWORD }))).toEqual(['new first_delivery']);
	});
});

test('a step that fails leaves everything as it was, says so, and is tried again', async () => {
	await claim(open());
	// A column of that name is there already.
	await database.query('ALTER TABLE idempotent_claims ADD COLUMN weight text');
	const store = open(NEWER);
	expect(await store.claim('claim', anOwner(), [aRequest()])).toMatchObject([{ verdict: 'error', error: { kind: 'store_misconfigured', sqlState: '42701' } }]);
	expect([await version(), await addedColumns()]).toEqual(['1.0', ['weight']]);
	await database.query('ALTER TABLE idempotent_claims DROP COLUMN weight');
	expect(await claim(store)).toEqual(['new first_delivery']);
	expect([await version(), await addedColumns()]).toEqual(['1.2', ['note', 'weight']]);
});

test('with Create Table off nothing is upgraded', async () => {
	await claim(open());
	expect(await claim(open(NEWER, { createTable: false }))).toEqual(['new first_delivery']);
	expect(await version()).toBe('1.0');
});

describe.each(['2.0', '0.9', '2.7', '10.0'])('a table of major version %s', (other) => {
	test.each([true, false])('is refused, and nothing is written (Create Table: %s)', async (createTable) => {
		await claim(open());
		await database.query(`COMMENT ON TABLE idempotent_claims IS 'n8n-nodes-idempotent-claim, schema ${other}'`);
		const [answer] = await open(CLAIM_TABLE, { createTable }).claim('claim', anOwner(), [aRequest()]);
		expect(answer).toMatchObject({ verdict: 'error', error: { kind: 'store_misconfigured', message: expect.stringContaining(`has schema version ${other}, this package needs 1.x`) as string } });
		expect(await database.query('SELECT count(*)::int AS count FROM idempotent_claims')).toEqual([{ count: 1 }]);
	});
});

test('a table that lost its mark is used as it is', async () => {
	await claim(open());
	await database.query(`COMMENT ON TABLE idempotent_claims IS 'ours'`);
	expect(await claim(open(NEWER))).toEqual(['new first_delivery']);
	expect(await version()).toBe('ours');
});
