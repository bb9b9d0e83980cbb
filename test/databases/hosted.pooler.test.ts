import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { IDataObject } from 'n8n-workflow';
import { claimsOf, deliveries, guarded, NEW_CLAIM, KNOWN_DUPLICATE, OPERATIONAL_ERROR, Workbench } from '../support/workbench';
import { makeAuthority, type Authority } from './support/certificates';
import { startPgBouncer, type PgBouncer } from './support/pgbouncer';
import { pressTest } from './support/site';

/** The poolers of Supabase and Neon, for which PgBouncer with TLS stands in: Neon's is one, Supabase's (Supavisor) works like one. */

const PASSWORD = 'hosted+S3cret/';

let workbench: Workbench;
let authority: Authority;
let folder: string;
beforeAll(async () => {
	workbench = await Workbench.open();
	authority = await makeAuthority('Own CA');
	folder = await mkdtemp(path.join(os.tmpdir(), 'idempotent-claim-hosted-'));
	await chmod(folder, 0o755);
	const { certificate, key } = await authority.forServer(['localhost']);
	await writeFile(path.join(folder, 'server.crt'), certificate);
	await writeFile(path.join(folder, 'server.key'), key);
});
afterAll(async () => {
	await workbench?.close();
	await rm(folder, { recursive: true, force: true });
});

const RECIPES: Array<[string, string, string, IDataObject]> = [
	['Supabase, session pooler', 'session', 'postgres.project', { query: '?sslmode=verify-full', schema: 'n8n' }],
	['Supabase, transaction pooler', 'transaction', 'postgres.other', { query: '?sslmode=verify-full', schema: 'n8n' }],
	['Neon, pooled', 'transaction', 'neondb_owner', { query: '?sslmode=verify-full&channel_binding=require', schema: 'public' }],
];

test.each(RECIPES)('%s: fifty deliveries and as many copies at once, each new exactly once', async (name, mode, user, { query, schema }) => {
	const { database } = workbench.database;
	await workbench.database.query(`CREATE ROLE "${user}" LOGIN PASSWORD '${PASSWORD}'`);
	await workbench.database.query(`DROP SCHEMA IF EXISTS n8n CASCADE`);
	await workbench.database.query(`CREATE SCHEMA n8n AUTHORIZATION "${user}"`);
	await workbench.database.query(`GRANT CREATE ON SCHEMA public TO "${user}"`);
	const { host, port } = workbench.database;
	const tls = { client_tls_sslmode: 'require', client_tls_cert_file: path.join(folder, 'server.crt'), client_tls_key_file: path.join(folder, 'server.key') };
	const pooler: PgBouncer = await startPgBouncer({ server: { host, port, user, password: PASSWORD }, settings: { pool_mode: mode, default_pool_size: mode === 'session' ? 10 : 2, ...tls } });
	try {
		const connectionString = `postgresql://${user}:${encodeURIComponent(PASSWORD)}@localhost:${pooler.port}/${database}${query as string}`;
		const store = workbench.credential({ connectWith: 'connectionString', connectionString, tls: 'verifyFull', caCertificate: authority.certificate, schema, maxConnections: 10, timeoutMs: 20_000 });
		expect(await pressTest(store)).toMatchObject({ status: 'OK' });

		const ids = Array.from({ length: 50 }, (_, index) => `${name}-${index}`);
		const runs = await Promise.all([...ids, ...ids].map(async (id) => await workbench.run(guarded(), { items: deliveries(id), credentials: { store } })));
		const said = runs.flatMap((run) => [NEW_CLAIM, KNOWN_DUPLICATE, OPERATIONAL_ERROR].flatMap((output) => claimsOf(run, 'Claim', output)));
		expect(said.filter(({ status }) => status === 'error')).toEqual([]);
		expect(said.filter(({ status }) => status === 'new').map(({ deliveryId }) => deliveryId).sort()).toEqual(ids.sort());
		const [{ count }] = await workbench.database.query<{ count: number }>(`SELECT count(*)::int AS count FROM ${schema as string}.idempotent_claims WHERE version = 1`);
		expect(count).toBe(50);
	} finally {
		await pooler.remove();
	}
});
