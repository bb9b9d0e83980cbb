import { chown, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createTestDatabase } from '../../support/database';
import { startOwnPostgres, type OwnPostgres } from '../../support/ownPostgres';
import { makeAuthority, type Authority } from './certificates';

/** A PostgreSQL that takes TLS and nothing else, with a certificate for these names by a CA of its own. */
export async function startTlsPostgres(names: string[]): Promise<{ postgres: OwnPostgres; authority: Authority }> {
	const postgres = await startOwnPostgres();
	const authority = await makeAuthority('Own CA');
	const { certificate, key } = await authority.forServer(names);
	const database = await createTestDatabase(postgres);
	const [{ folder }] = await database.query<{ folder: string }>(`SELECT current_setting('data_directory') AS folder`);
	const owner = await stat(folder);
	const put = async (name: string, text: string) => {
		await writeFile(path.join(folder, name), text, { mode: 0o600 });
		await chown(path.join(folder, name), owner.uid, owner.gid);
	};
	await put('server.crt', certificate);
	await put('server.key', key);
	// The owner's own connection is for the tests themselves. `md5` takes either kind of stored password: before PostgreSQL 14,
	// it is not SCRAM unless one asks for it.
	await put('pg_hba.conf', `host all ${postgres.user} 127.0.0.1/32 md5\nhostssl all all all md5\n`);
	await database.query('ALTER SYSTEM SET ssl = on');
	await database.drop();
	await postgres.stop();
	await postgres.start();
	return { postgres, authority };
}
