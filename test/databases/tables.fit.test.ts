import { Workbench } from '../support/workbench';
import { asIs, shippedSql, Site } from './support/site';

/**
 * Tables that somebody made or changed by hand. One that would make a New Claim wrong is refused before anything is
 * written, and the credential test says the same before the first claim; one that is only built otherwise works.
 */

let workbench: Workbench;
beforeAll(async () => {
	workbench = await Workbench.open();
	await workbench.database.query('CREATE EXTENSION citext');
	await workbench.database.query(`CREATE COLLATION "ignores case" (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`);
	await workbench.database.query(`CREATE COLLATION "icu" (provider = icu, locale = 'und')`);
	await workbench.database.query('CREATE DOMAIN short_text AS text CHECK (length(VALUE) < 100)');
});
afterAll(async () => await workbench.close());

const KEY = 'delivery_id, source, account, action, environment';
const NO_KEY = (sql: string) => sql.replace(/(history +jsonb NOT NULL),([^\n]*)\s*PRIMARY KEY \([^)]*\)/, '$1$2');
/** A table made by the shipped SQL as somebody edited it, and changed afterwards. */
async function made(edit: (sql: string) => string, ...changes: string[]): Promise<Site> {
	return await Site.made(workbench, changes, edit);
}

const without = (column: string) => `ALTER TABLE $TABLE DROP COLUMN ${column}`;
const withType = (column: string, type: string) => `ALTER TABLE $TABLE ALTER COLUMN ${column} TYPE ${type}`;

describe('works', () => {
	test.each<[string, (sql: string) => string, ...string[]]>([
		['as shipped', asIs],
		['key of other column order', (sql) => sql.replace(/PRIMARY KEY \([^)]*\)/, 'PRIMARY KEY (environment, action, account, source, delivery_id)')],
		['unique constraint instead of primary key', (sql) => sql.replace('PRIMARY KEY', 'UNIQUE')],
		['unique index instead of primary key', NO_KEY, `CREATE UNIQUE INDEX ON $TABLE (${KEY})`],
		['key that carries another column', (sql) => sql.replace(/(PRIMARY KEY \([^)]*\))/, '$1 INCLUDE (state)')],
		['key twice', asIs, `CREATE UNIQUE INDEX ON $TABLE (${KEY})`],
		['other indexes that are not unique', asIs, 'CREATE INDEX ON $TABLE (source)', 'CREATE INDEX ON $TABLE (lower(delivery_id))'],
		['columns in another order, and others beside them', (sql) => sql.replace(/\n\tdelivery_id[^\n]*/, '').replace('\n\tsource ', '\n\tid bigserial,\n\tnote text NOT NULL DEFAULT \'\',\n\tsource ').replace('\n\thistory ', '\n\tdelivery_id text COLLATE "C" NOT NULL,\n\thistory ')],
		['no CHECK constraints', (sql) => sql.replace(/ CHECK \((?:[^()]|\([^()]*\))*\)/g, '')],
		['texts in the database\'s own collation', (sql) => sql.replaceAll(' COLLATE "C"', '')],
		['texts in an ICU collation that takes no different texts for equal', (sql) => sql.replaceAll('"C"', '"icu"')],
		['no version mark', asIs, 'COMMENT ON TABLE $TABLE IS NULL'],
		['a comment of somebody\'s own', asIs, `COMMENT ON TABLE $TABLE IS 'n8n claims, ask the platform team'`],
		['a newer minor version', asIs, `COMMENT ON TABLE $TABLE IS 'n8n-nodes-idempotent-claim, schema 1.7'`, 'ALTER TABLE $TABLE ADD COLUMN weight integer NOT NULL DEFAULT 1'],
		['a trigger that only takes note', asIs, 'CREATE TABLE IF NOT EXISTS notes (at timestamptz)', `CREATE OR REPLACE FUNCTION take_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO notes VALUES (now()); RETURN NULL; END $$`, 'CREATE TRIGGER note AFTER INSERT OR UPDATE ON $TABLE FOR EACH ROW EXECUTE FUNCTION take_note()'],
		['a trigger that is switched off', asIs, 'CREATE TRIGGER off BEFORE INSERT ON $TABLE FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()', 'ALTER TABLE $TABLE DISABLE TRIGGER off'],
		['storage of another kind', asIs, 'ALTER TABLE $TABLE SET (fillfactor = 70)', 'ALTER TABLE $TABLE ALTER COLUMN payload SET STORAGE EXTERNAL'],
	])('%s', async (_title, edit, ...changes) => {
		const site = await made(edit, ...changes);
		expect(await site.test()).toEqual({ status: 'OK', message: expect.stringContaining(`The table "public"."${site.table}" is ready.`) as string });
		await site.works();
	});

	test('IDs that differ in case, accents or normal form alone are different, in any collation that works', async () => {
		for (const edit of [asIs, (sql: string) => sql.replaceAll(' COLLATE "C"', ''), (sql: string) => sql.replaceAll('"C"', '"icu"')]) {
			const site = await made(edit);
			const { said } = await site.deliver(['Evt', 'evt', 'EVT', 'é', 'e\u0301', 'e', 'ß', 'ss']);
			expect(said).toEqual(Array(8).fill('new first_delivery, recorded'));
		}
	});

	test.each<[string, string, string]>([
		['by hash of the delivery ID', 'PARTITION BY HASH (delivery_id)', [0, 1, 2].map((remainder) => `CREATE TABLE part_${remainder} PARTITION OF $TABLE FOR VALUES WITH (MODULUS 3, REMAINDER ${remainder})`).join('; ')],
		['by environment', 'PARTITION BY LIST (environment)', `CREATE TABLE part_live PARTITION OF $TABLE FOR VALUES IN ('live'); CREATE TABLE part_test PARTITION OF $TABLE FOR VALUES IN ('test')`],
		['by source', 'PARTITION BY LIST (source)', 'CREATE TABLE part_other PARTITION OF $TABLE DEFAULT'],
	])('partitioned %s', async (_title, clause, partitions) => {
		const site = await made((sql) => sql.replace(/\n\);/, `\n) ${clause};`), partitions);
		expect((await site.test()).status).toBe('OK');
		await site.works();
	});
});

describe('is refused: its key does not make a delivery unique', () => {
	const LACKS = /^The table "public"\."claims_\d+" lacks its primary key$/;

	test.each<[string, (sql: string) => string, ...string[]]>([
		['no key', NO_KEY],
		['a key of fewer columns', (sql) => sql.replace(/PRIMARY KEY \([^)]*\)/, 'PRIMARY KEY (delivery_id, source, account, action)')],
		['a key of more columns', (sql) => sql.replace(/PRIMARY KEY \([^)]*\)/, 'PRIMARY KEY (delivery_id, source, account, action, environment, version)')],
		['a key that only carries the rest', (sql) => sql.replace(/PRIMARY KEY \([^)]*\)/, 'PRIMARY KEY (delivery_id, source) INCLUDE (account, action, environment)')],
		['an index that is not unique', NO_KEY, `CREATE INDEX ON $TABLE (${KEY})`],
		['a partial unique index', NO_KEY, `CREATE UNIQUE INDEX ON $TABLE (${KEY}) WHERE environment = 'live'`],
		['a unique index over an expression', NO_KEY, 'CREATE UNIQUE INDEX ON $TABLE (lower(delivery_id), source, account, action, environment)'],
		['a unique index over the columns and an expression', NO_KEY, `CREATE UNIQUE INDEX ON $TABLE (${KEY}, lower(state))`],
		['a deferrable key', (sql) => sql.replace(/(PRIMARY KEY \([^)]*\))/, '$1 DEFERRABLE INITIALLY DEFERRED')],
		['a unique index in a collation that takes different texts for equal', NO_KEY, 'CREATE UNIQUE INDEX ON $TABLE (delivery_id COLLATE "ignores case", source, account, action, environment)'],
		['partitioned by time', (sql) => sql.replace(/PRIMARY KEY \([^)]*\)\s*\);/, 'PRIMARY KEY (delivery_id, source, account, action, environment, first_seen_at)\n) PARTITION BY RANGE (first_seen_at);'), `CREATE TABLE part_of_time PARTITION OF $TABLE DEFAULT`],
		['a partitioned table whose partitions alone have keys', (sql) => NO_KEY(sql).replace(/\n\);/, '\n) PARTITION BY RANGE (first_seen_at);'), `CREATE TABLE part_with_key PARTITION OF $TABLE (PRIMARY KEY (${KEY})) DEFAULT`],
	])('%s', async (_title, edit, ...changes) => {
		const site = await made(edit, ...changes);
		await site.refuses(LACKS);
		expect(await site.count()).toBe(0);
	});

	// What CREATE UNIQUE INDEX CONCURRENTLY leaves behind when it meets two rows of one key.
	test('an invalid unique index', async () => {
		const site = await made(NO_KEY);
		await site.insert('twin');
		await site.insert('twin');
		await expect(site.query(`CREATE UNIQUE INDEX CONCURRENTLY ON $TABLE (${KEY})`)).rejects.toMatchObject({ code: '23505' });
		await site.refuses(LACKS);
		expect(await site.count()).toBe(2);
		// Mended as a DBA would, without a restart of n8n.
		await site.query(`DELETE FROM $TABLE WHERE delivery_id = 'twin'`);
		const [{ name }] = await site.query<{ name: string }>(`SELECT indexrelid::regclass::text AS name FROM pg_index WHERE indrelid = '$TABLE'::regclass AND NOT indisvalid`);
		await site.query(`REINDEX INDEX ${name}`);
		await site.works();
	});

	test('a unique index whose making was broken off at its end', async () => {
		const site = await made(NO_KEY);
		await site.breakOff(`CREATE UNIQUE INDEX CONCURRENTLY ON $TABLE (${KEY})`);
		await site.refuses(LACKS);
		expect(await site.count()).toBe(0);
	});

	test('it is mended: the next claim works, without a restart', async () => {
		const site = await made(NO_KEY);
		await site.refuses(LACKS);
		await site.query(`ALTER TABLE $TABLE ADD PRIMARY KEY (${KEY})`);
		expect((await site.test()).status).toBe('OK');
		await site.works();
	});
});

describe('is refused: a column would change what is stored', () => {
	test.each([
		['delivery_id', 'citext', 'citext'],
		['source', 'citext', 'citext'],
		['delivery_id', 'varchar(50)', 'character varying(50)'],
		['delivery_id', 'varchar', 'character varying'],
		['delivery_id', 'char(64)', 'character(64)'],
		['delivery_id', 'short_text', 'short_text'],
		['delivery_id', 'name', 'name'],
		['owner_token', 'varchar(20)', 'character varying(20)'],
		['payload', 'jsonb', 'jsonb'],
		['version', 'bigint', 'bigint'],
		['version', 'smallint', 'smallint'],
	])('%s %s', async (column, type, shown) => {
		const site = await made(asIs, withType(column, `${type} USING ${column}::text::${type}`));
		await site.refuses(`has columns of another type: ${column} is ${shown} instead of `);
		expect(await site.count()).toBe(0);
	});

	// Written in one session's zone and read in another's, a lease that runs is over: somebody else takes the claim.
	test('instants without a time zone', async () => {
		const site = await made(asIs, ...['lease_expires_at', 'retry_at', 'purge_after'].map((column) => withType(column, 'timestamp')));
		await site.refuses(/lease_expires_at is timestamp without time zone instead of timestamp with time zone, retry_at is .*, purge_after is /);
	});

	test('instants without their fractions', async () => {
		const site = await made(asIs, withType('lease_expires_at', 'timestamptz(0)'));
		await site.refuses('lease_expires_at is timestamp(0) with time zone instead of timestamp with time zone');
	});

	test('a collation that takes different texts for equal: two deliveries would be one', async () => {
		const site = await made(asIs, withType('delivery_id', 'text COLLATE "ignores case"'));
		await site.refuses('has columns whose collation takes different texts for equal: delivery_id');
		await site.query(withType('delivery_id', 'text COLLATE "C"'));
		await site.works();
	});
});

describe('is refused: not a claim table of this version', () => {
	test('lacks columns', async () => {
		const site = await made(asIs, without('event_type'), without('resolved_by'));
		await site.refuses('lacks columns of this version: resolved_by, event_type');
	});

	test('a table of somebody else', async () => {
		const site = Site.at(workbench);
		await site.query('CREATE TABLE $TABLE (id bigserial PRIMARY KEY, state text)');
		await site.refuses('lacks columns of this version: delivery_id, source,');
		expect(await site.count()).toBe(0);
	});

	test.each([true, false])('a newer major version (Create Table: %s)', async (createTable) => {
		const site = Site.at(workbench, { createTable });
		await site.query(shippedSql(site.table));
		await site.query(`COMMENT ON TABLE $TABLE IS 'n8n-nodes-idempotent-claim, schema 2.0'`);
		await site.refuses('has schema version 2.0, this package needs 1.x');
		expect(await site.count()).toBe(0);
	});

	test('is not there, and Create Table is off; it appears, and the next claim works', async () => {
		const site = Site.at(workbench, { createTable: false });
		const { said, errors } = await site.deliver(['a']);
		expect(said).toEqual(['error store_misconfigured']);
		expect(errors).toMatchObject([{ message: `The table "public"."${site.table}" does not exist`, hint: expect.stringContaining('claim-table.sql') as string }]);
		expect((await site.test()).message).toMatch(/does not exist, and Create Table is off.*claim-table\.sql/);
		await site.query(shippedSql(site.table));
		expect((await site.test()).status).toBe('OK');
		await site.works();
	});

	// It is looked at when it appears, not taken on trust.
	test('appears without its key, with Create Table off', async () => {
		const site = Site.at(workbench, { createTable: false });
		await site.deliver(['a']);
		await site.query(NO_KEY(shippedSql(site.table)));
		await site.refuses('lacks its primary key');
		expect(await site.count()).toBe(0);
	});
});

describe('is refused: not a table', () => {
	async function over(kind: string, create: (base: Site) => string): Promise<Site> {
		const base = await made(asIs);
		const site = Site.at(workbench);
		await site.query(create(base));
		await site.refuses(`"public"."${site.table}" is ${kind}`);
		expect(await base.count()).toBe(0);
		return site;
	}

	test('a view', async () => void (await over('a view', (base) => `CREATE VIEW $TABLE AS SELECT * FROM ${base.name}`)));
	test('a materialized view', async () => void (await over('a materialized view', (base) => `CREATE MATERIALIZED VIEW $TABLE AS SELECT * FROM ${base.name}`)));
	test('a sequence', async () => void (await over('a sequence', () => 'CREATE SEQUENCE $TABLE')));

	test('a foreign table', async () => {
		await workbench.database.query('CREATE EXTENSION postgres_fdw');
		await workbench.database.query('CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw');
		await over('a foreign table', (base) => {
			const columns = /\((.*?),\s*PRIMARY KEY/s.exec(shippedSql(base.table))?.[1] ?? '';
			return `CREATE FOREIGN TABLE $TABLE (${columns}) SERVER elsewhere OPTIONS (table_name '${base.table}')`;
		});
	});
});

describe('is refused: a rule stands before it', () => {
	test.each(['INSERT', 'UPDATE'])('ON %s DO INSTEAD NOTHING', async (event) => {
		const site = await made(asIs, `CREATE RULE nothing AS ON ${event} TO $TABLE DO INSTEAD NOTHING`);
		await site.refuses('has rules for INSERT or UPDATE: nothing');
		await site.query('DROP RULE nothing ON $TABLE');
		await site.works();
	});
});
