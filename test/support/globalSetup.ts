import { chmod, mkdtemp } from 'node:fs/promises';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { SERVER_PACKAGE_VARIABLE, startPostgres, type RunningPostgres } from '../../sandbox/postgres';

declare global {
	// The only thing that setup and teardown share; test files see the environment variables.
	var testPostgres: RunningPostgres | undefined;
}

/**
 * One PostgreSQL server for the whole test run. Test files get a database each (`database.ts`), so
 * they cannot see one another; starting a server per file would cost more than the tests.
 *
 * `TEST_POSTGRES=13` takes an older version of PostgreSQL; `npm run test:versions` installs them.
 */
export default async function globalSetup(): Promise<void> {
	const { TEST_POSTGRES } = process.env;
	// All servers of this run are of that version, those that tests start for themselves included.
	if (TEST_POSTGRES) process.env[SERVER_PACKAGE_VARIABLE] = createRequire(path.join(__dirname, '../databases/servers/package.json')).resolve(`postgres-${TEST_POSTGRES}`);
	const folder = await mkdtemp(path.join(os.tmpdir(), 'idempotent-claim-test-'));
	// Started by root, the server runs as another user, who must get through this folder.
	await chmod(folder, 0o755);
	const server = await startPostgres({
		dataFolder: path.join(folder, 'postgres'),
		temporary: true,
		// Passwords as every version since 14 keeps them.
		serverFlags: ['-c', 'max_connections=300', '-c', 'password_encryption=scram-sha-256'],
	});
	globalThis.testPostgres = server;
	process.env.TEST_FOLDER = folder;
	process.env.TEST_PG_HOST = server.host;
	process.env.TEST_PG_PORT = String(server.port);
	process.env.TEST_PG_USER = server.user;
	process.env.TEST_PG_PASSWORD = server.password;
	// n8n-core writes an encryption key into its user folder unless it is told both.
	process.env.N8N_USER_FOLDER = path.join(folder, 'n8n');
	process.env.N8N_ENCRYPTION_KEY = 'test-only';
	// The engine reports every error of a node; here most of them are meant.
	process.env.N8N_LOG_LEVEL = 'silent';
}
