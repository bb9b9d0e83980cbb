import type { ICredentialDataDecryptedObject, IDataObject } from 'n8n-workflow';
import type { OwnPostgres } from '../support/ownPostgres';
import { claimsOf, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, Workbench, type Claim } from '../support/workbench';
import { makeAuthority, type Authority } from './support/certificates';
import { pressTest } from './support/site';
import { startTlsPostgres } from './support/tlsPostgres';

/**
 * The recipes for hosted databases in docs/connecting.md, as far as a PostgreSQL with TLS on this machine can stand in
 * for the provider. Their poolers are in hosted.pooler.test.ts.
 */

const PASSWORD = 'hosted+S3cret/';

let postgres: OwnPostgres;
let workbench: Workbench;
let authority: Authority;
beforeAll(async () => {
	({ postgres, authority } = await startTlsPostgres(['localhost']));
	workbench = await Workbench.open({}, postgres);
});
afterAll(async () => {
	await workbench?.close();
	await postgres?.remove();
});

/** A login as the provider makes it: it owns its database, and is no superuser. */
async function ownerOfTheDatabase(name: string): Promise<void> {
	const { database } = workbench.database;
	await workbench.database.query(`CREATE ROLE "${name}" LOGIN PASSWORD '${PASSWORD}'`);
	await workbench.database.query(`ALTER DATABASE ${database} OWNER TO "${name}"`);
}

let deliveriesMade = 0;

/** The claims of a delivery and of its copy, and what the credential test says before. */
async function deliverTwice(credential: ICredentialDataDecryptedObject): Promise<string[]> {
	const test = await pressTest(credential);
	const id = `d-${++deliveriesMade}`;
	const deliver = async (): Promise<Claim> => {
		const run = await workbench.run(guarded(), { items: deliveries(id), credentials: { store: credential } });
		return [NEW_CLAIM, KNOWN_DUPLICATE, OPERATIONAL_ERROR].flatMap((output) => claimsOf(run, 'Claim', output))[0];
	};
	const inShort = ({ status, reason, error }: Claim) => (error ? `${error.message}. ${error.hint}` : `${status} ${reason}`);
	return [test.status, inShort(await deliver()), inShort(await deliver())];
}

const WORKS = ['OK', 'new first_delivery', 'duplicate in_progress'];
const address = (user: string, query: string) => `postgresql://${user}:${encodeURIComponent(PASSWORD)}@localhost:${postgres.port}/${workbench.database.database}${query}`;
const byString = (connectionString: string, changes: IDataObject = {}) => workbench.credential({ connectWith: 'connectionString', connectionString, timeoutMs: 10_000, ...changes });

/** Whether the package's sessions of this user are encrypted, by the server's own account. */
async function encrypted(user: string): Promise<boolean[]> {
	const rows = await workbench.database.query<{ ssl: boolean }>('SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = $1', [user]);
	return rows.map(({ ssl }) => ssl);
}

describe('Supabase', () => {
	beforeAll(async () => {
		await ownerOfTheDatabase('postgres.project');
		for (const role of ['anon', 'authenticated']) await workbench.database.query(`CREATE ROLE ${role} LOGIN PASSWORD '${PASSWORD}'`);
		await workbench.database.query('GRANT USAGE ON SCHEMA public TO anon, authenticated');
		await workbench.database.query('GRANT USAGE, CREATE ON SCHEMA public TO "postgres.project"');
		await workbench.database.query('ALTER DEFAULT PRIVILEGES FOR ROLE "postgres.project" IN SCHEMA public GRANT ALL ON TABLES TO anon, authenticated');
	});

	const credential = (changes: IDataObject = {}) => byString(address('postgres.project', '?sslmode=verify-full'), { tls: 'verifyFull', caCertificate: authority.certificate, ...changes });
	const mayRead = async (schema: string) => (await workbench.database.query<{ may: boolean }>(`SELECT has_schema_privilege('anon', '${schema}', 'USAGE') AND has_table_privilege('anon', '${schema}.idempotent_claims', 'SELECT') AS may`))[0].may;

	test('a schema of its own keeps claims out of reach of the Data API, whose roles may read every table in public', async () => {
		await workbench.database.query('CREATE SCHEMA n8n AUTHORIZATION "postgres.project"');
		expect(await deliverTwice(credential({ schema: 'n8n' }))).toEqual(WORKS);
		expect(await encrypted('postgres.project')).toEqual([true]);
		expect(await mayRead('n8n')).toBe(false);

		expect(await deliverTwice(credential())).toEqual(WORKS);
		expect(await mayRead('public')).toBe(true);
	});

	test('row-level security in public does the same, and does not hinder the owner', async () => {
		await deliverTwice(credential());
		await workbench.database.query('ALTER TABLE public.idempotent_claims ENABLE ROW LEVEL SECURITY');
		expect(await deliverTwice(credential())).toEqual(WORKS);
		await workbench.database.query('SET ROLE anon');
		expect(await workbench.database.query('SELECT * FROM public.idempotent_claims')).toEqual([]);
		await workbench.database.query('RESET ROLE');
		expect(await workbench.database.query('SELECT * FROM public.idempotent_claims')).not.toEqual([]);
	});
});

describe('Neon', () => {
	beforeAll(async () => await ownerOfTheDatabase('neondb_owner'));
	const made = { schema: 'neon' };
	beforeAll(async () => void (await workbench.database.query('CREATE SCHEMA neon AUTHORIZATION neondb_owner')));

	test('the connection string as the console shows it is encrypted', async () => {
		expect(await deliverTwice(byString(address('neondb_owner', '?sslmode=require&channel_binding=require'), made))).toEqual(WORKS);
		expect(await encrypted('neondb_owner')).toEqual([true]);
	});

	test('with verify-full in it, the server is verified as well', async () => {
		const connectionString = address('neondb_owner', '?sslmode=verify-full&channel_binding=require');
		expect(await deliverTwice(byString(connectionString, { ...made, tls: 'verifyFull', caCertificate: authority.certificate }))).toEqual(WORKS);
		const [test, first] = await deliverTwice(byString(connectionString, made));
		expect([test, first]).toEqual(['Error', expect.stringContaining('not signed by a CA')]);
	});
});

describe('Amazon RDS', () => {
	beforeAll(async () => {
		await ownerOfTheDatabase('rds_owner');
		await workbench.database.query('CREATE SCHEMA rds AUTHORIZATION rds_owner');
	});

	const credential = (changes: IDataObject) => workbench.credential({ host: 'localhost', user: 'rds_owner', password: PASSWORD, schema: 'rds', timeoutMs: 10_000, ...changes });

	test('without TLS, which rds.force_ssl refuses, the error says what to choose', async () => {
		const [test, first] = await deliverTwice(credential({ tls: 'disable' }));
		expect([test, first]).toEqual(['Error', expect.stringMatching(/(no encryption|SSL off).*choose Require or Verify Full under TLS/)]);
	});

	test('Verify Full with a bundle of 120 CAs, pasted into the one line of a password field', async () => {
		const others = await Promise.all(Array.from({ length: 119 }, async (_, index) => (await makeAuthority(`Amazon RDS region-${index} Root CA`)).certificate));
		const bundle = [...others.slice(0, 60), authority.certificate, ...others.slice(60)].join('').replace(/\n/g, ' ');
		expect(await deliverTwice(credential({ tls: 'verifyFull', caCertificate: bundle }))).toEqual(WORKS);
		const without = others.join('').replace(/\n/g, ' ');
		expect((await deliverTwice(credential({ tls: 'verifyFull', caCertificate: without })))[1]).toContain('not signed by a CA');
	});
});
