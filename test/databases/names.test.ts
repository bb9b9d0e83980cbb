import { escapeIdentifier } from 'pg';
import { Workbench } from '../support/workbench';
import { shippedSql, Site } from './support/site';

/** Schemas and tables may have any name that PostgreSQL can hold; the one that the credential names is used, no other. */

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterAll(async () => await workbench.close());

const NAMES: Array<[schema: string, table: string]> = [
	['Claims', 'Idempotent_Claims'],
	['n8n-claims', 'my-claims'],
	['team.integration', 'claims.v1'],
	[' spaces in ', ' and around '],
	['we "quote"', `it's "odd"; DROP TABLE x --`],
	['back\\slash', 'tab\tand\nline'],
	['select', 'table'],
	['$&', '$1 $$ %s :"schema".:"table"'],
	['schéma', '表'],
	['👋', 'e\u0301'],
	['1', '2'],
	['S'.repeat(63), 'x'.repeat(63)],
	['ä'.repeat(31), '表'.repeat(21)],
];

test.each(NAMES)('schema %j, table %j', async (schema, table) => {
	await workbench.database.query(`CREATE SCHEMA ${escapeIdentifier(schema)}`);
	const site = Site.at(workbench, { schema, table });
	expect(await site.test()).toEqual({ status: 'OK', message: expect.stringContaining(`The table "${schema}"."${table}" does not exist yet: the first claim creates it.`) as string });
	await site.works();
	expect(await site.test()).toEqual({ status: 'OK', message: expect.stringContaining(`The table "${schema}"."${table}" is ready.`) as string });
	// Another process finds it again, and the names are those that were asked for.
	await Site.at(workbench, { schema, table, maxConnections: 9 }).works();
	expect(await workbench.database.query('SELECT tablename FROM pg_tables WHERE schemaname = $1', [schema])).toEqual([{ tablename: table }]);
});

test.each(NAMES)('schema %j, table %j: wrong in the same way that any table is', async (schema, table) => {
	await workbench.database.query(`CREATE SCHEMA IF NOT EXISTS ${escapeIdentifier(schema)}`);
	const site = Site.at(workbench, { schema, table });
	await workbench.database.query(`DROP TABLE IF EXISTS ${site.name}`);
	await workbench.database.query(`CREATE TABLE ${site.name} (id int)`);
	const { message } = await site.test();
	expect(message).toContain(`The table "${schema}"."${table}" lacks columns`);
});

// PostgreSQL would cut it without a word, and two tables would be one.
test('a name of more than 63 bytes is refused before anything is sent', async () => {
	for (const site of [Site.at(workbench, { table: 'x'.repeat(64) }), Site.at(workbench, { schema: 'ä'.repeat(32) })]) {
		const { said, errors } = await site.deliver(['a']);
		expect(said).toEqual(['error store_misconfigured']);
		expect(errors[0].hint).toContain('63 bytes');
		expect((await site.test()).message).toContain('63 bytes');
	}
});

describe('one table name in two schemas', () => {
	const PASSWORD = 'app-only';
	const roles: string[] = [];

	/** A login whose search_path begins with this schema, and which may use the tables of both. */
	async function roleWithPath(searchPath: string): Promise<string> {
		const role = `app_${roles.length}_${workbench.database.database}`;
		await workbench.database.query(`CREATE ROLE ${role} LOGIN PASSWORD '${PASSWORD}'`);
		roles.push(role);
		await workbench.database.query(`ALTER ROLE ${role} SET search_path = ${searchPath}`);
		for (const schema of ['one', 'two']) {
			await workbench.database.query(`GRANT USAGE ON SCHEMA ${schema} TO ${role}`);
			await workbench.database.query(`GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA ${schema} TO ${role}`);
		}
		return role;
	}

	beforeAll(async () => {
		for (const schema of ['one', 'two']) {
			await workbench.database.query(`CREATE SCHEMA ${schema}`);
			await workbench.database.query(shippedSql('claims', schema));
		}
	});
	afterAll(async () => {
		for (const role of roles) {
			await workbench.database.query(`DROP OWNED BY ${role}`);
			await workbench.database.query(`DROP ROLE ${role}`);
		}
	});

	test.each(['one, two', 'two, one', 'nowhere', 'two, pg_catalog'])('the credential says which, whatever the search_path (%s)', async (searchPath) => {
		const role = await roleWithPath(searchPath);
		const [one, two] = ['one', 'two'].map((schema) => Site.at(workbench, { schema, table: 'claims' }).as(role, PASSWORD));
		const id = `evt-${role}`;
		for (const site of [one, two]) expect((await site.test()).status).toBe('OK');
		for (const site of [one, two]) {
			expect((await site.deliver([id])).said).toEqual(['new first_delivery, recorded']);
			expect((await site.deliver([id])).said).toEqual(['duplicate completed']);
		}
		expect(await workbench.database.query('SELECT (SELECT count(*)::int FROM one.claims WHERE delivery_id = $1) AS one, (SELECT count(*)::int FROM two.claims WHERE delivery_id = $1) AS two', [id])).toEqual([{ one: 1, two: 1 }]);
	});

	test('the good one of two is not taken for the bad one', async () => {
		const role = await roleWithPath('one, two');
		await workbench.database.query('ALTER TABLE one.claims DROP CONSTRAINT claims_pkey');
		await Site.at(workbench, { schema: 'one', table: 'claims' }).as(role, PASSWORD).refuses('The table "one"."claims" lacks its primary key');
		await Site.at(workbench, { schema: 'two', table: 'claims' }).as(role, PASSWORD).works();
	});
});
