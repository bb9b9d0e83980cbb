import { Workbench } from '../support/workbench';
import { shippedSql, Site } from './support/site';

/** A DBA makes the table with the shipped SQL and grants what it says; anything less is named, by the credential test too. */

let workbench: Workbench;
let role: string;
const PASSWORD = 'app-only';

beforeAll(async () => (workbench = await Workbench.open()));
beforeEach(async () => {
	role = `app_${workbench.database.database}`;
	await workbench.database.query(`CREATE ROLE ${role} LOGIN PASSWORD '${PASSWORD}'`);
});
afterEach(async () => {
	await workbench.database.query(`DROP OWNED BY ${role}`);
	await workbench.database.query(`DROP ROLE ${role}`);
});
afterAll(async () => await workbench.close());

let schemas = 0;

/** A table by the shipped SQL in a schema of its own, seen by a role with these rights. */
async function granted(rights: string[], changes: { createTable?: boolean } = {}): Promise<Site> {
	const schema = `desk_${++schemas}`;
	const site = Site.at(workbench, { schema, table: 'claims', ...changes }).as(role, PASSWORD);
	await site.query(`CREATE SCHEMA ${schema}`);
	await site.query(shippedSql('claims', schema));
	await grant(site, rights);
	return site;
}

async function grant(site: Site, rights: string[]): Promise<void> {
	for (const right of rights) await site.query(`GRANT ${right} ON ${right === 'USAGE' || right === 'CREATE' ? `SCHEMA ${site.schema}` : '$TABLE'} TO ${role}`);
}

const ALL = ['SELECT', 'INSERT', 'UPDATE', 'USAGE'];

test.each([true, false])('SELECT, INSERT, UPDATE and USAGE are all that it takes (Create Table: %s)', async (createTable) => {
	const site = await granted(ALL, { createTable });
	expect((await site.test()).status).toBe('OK');
	await site.works();
});

test.each([
	['SELECT', ['error store_denied']],
	['INSERT', ['error store_denied']],
	// Claimed, with its row; the outcome is refused, and the execution fails on it.
	['UPDATE', ['new first_delivery, error store_denied']],
	['USAGE', ['error store_denied']],
])('without %s', async (missing, answers) => {
	const site = await granted(ALL.filter((right) => right !== missing));
	const { status, message } = await site.test();
	expect(status).toBe('Error');
	expect(message).toMatch(new RegExp(`: it lacks ${missing}( on the schema)?\\. Grant SELECT, INSERT and UPDATE on the table, and USAGE on its schema\\.`));

	const { said, errors } = await site.deliver(['a']);
	expect(said).toEqual(answers);
	for (const error of errors) expect(error).toMatchObject({ sqlState: '42501', hint: expect.stringContaining('Grant SELECT, INSERT and UPDATE') as string });
	expect(await site.count()).toBe(answers[0].startsWith('new') ? 1 : 0);

	// Mended without a restart.
	await grant(site, [missing]);
	expect((await site.test()).status).toBe('OK');
	await site.works();
});

test('without any right', async () => {
	const site = await granted([]);
	expect((await site.test()).message).toContain('it lacks SELECT, INSERT, UPDATE, USAGE on the schema');
	expect((await site.deliver(['a'])).said).toEqual(['error store_denied']);
});

describe('no table yet', () => {
	async function emptySchema(rights: string[], createTable = true): Promise<Site> {
		const schema = `desk_${++schemas}`;
		const site = Site.at(workbench, { schema, table: 'claims', createTable }).as(role, PASSWORD);
		await site.query(`CREATE SCHEMA ${schema}`);
		await grant(site, rights);
		return site;
	}

	test('USAGE and CREATE on the schema: the first claim makes it, and a test before that is a pass', async () => {
		const site = await emptySchema(['USAGE', 'CREATE']);
		expect(await site.test()).toEqual({ status: 'OK', message: expect.stringContaining('does not exist yet: the first claim creates it.') as string });
		await site.works();
		expect(await site.query(`SELECT tableowner FROM pg_tables WHERE schemaname = '${site.schema}'`)).toEqual([{ tableowner: role }]);
	});

	test.each([[['USAGE']], [['CREATE']], [[]]])('only %j: refused, and said before', async (rights) => {
		const site = await emptySchema(rights);
		expect((await site.test()).message).toContain(`this user may not create it (PostgreSQL 15 and newer withhold CREATE on the schema public). Run GRANT USAGE, CREATE ON SCHEMA "${site.schema}"`);
		const { said, errors } = await site.deliver(['a']);
		expect(said).toEqual(['error store_denied']);
		expect(errors[0].hint).toContain('grant CREATE on the schema');
		expect(await site.query(`SELECT FROM pg_tables WHERE schemaname = '${site.schema}'`)).toEqual([]);
	});

	test('no such schema', async () => {
		const site = Site.at(workbench, { schema: 'nowhere' }).as(role, PASSWORD);
		expect((await site.test()).message).toBe('The schema "nowhere" does not exist. Create it, or correct Schema in the credential.');
		expect(await site.deliver(['a'])).toMatchObject({ said: ['error store_misconfigured'], errors: [{ message: 'The schema "nowhere" does not exist' }] });
	});
});

describe('a read-only login', () => {
	test('is refused, and said before', async () => {
		const site = await granted(ALL);
		await site.query(`ALTER ROLE ${role} SET default_transaction_read_only = on`);
		expect((await site.test()).message).toContain('The server is read-only');
		expect(await site.deliver(['a'])).toMatchObject({ said: ['error store_misconfigured'], errors: [{ sqlState: '25006' }] });
		expect(await site.count()).toBe(0);
	});
});
