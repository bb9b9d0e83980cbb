import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Client } from 'pg';
import { startPostgresApart } from '../sandbox/postgresProcess';
import type { ServerAddress } from '../test/support/database';
import type { Bench } from './section';

/** As Linux names tmpfs in `statfs`. */
const TMPFS = 0x01021994;

/** What decides how long a commit takes, and how much is kept in memory. */
const SETTINGS = ['fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method', 'shared_buffers', 'max_wal_size', 'max_connections', 'autovacuum'];

/** Starts PostgreSQL for one run, in a folder of its own that is deleted at the end, and stops it, whatever happens. */
export async function withServer<Result>(parent: string | undefined, use: (place: Pick<Bench, 'server' | 'folder'>) => Promise<Result>): Promise<Result> {
	const folder = await mkdtemp(path.join(parent ?? os.tmpdir(), 'idempotent-claim-bench-'));
	// Started by root, the server runs as another user, who must get through this folder.
	await chmod(folder, 0o755);
	try {
		// In a process of its own, so that Ctrl-C does not take it away from those that are still asking it.
		const server = await startPostgresApart({ dataFolder: path.join(folder, 'postgres'), temporary: true, serverFlags: ['-c', 'max_connections=200'] });
		try {
			return await use({ server, folder });
		} finally {
			await server.stop();
		}
	} finally {
		await rm(folder, { recursive: true, force: true });
	}
}

/** On what, and with which settings, this run was measured. */
export async function describeSite({ server, folder, quick }: Bench): Promise<string> {
	const [cpu] = os.cpus();
	const { version, settings } = await readServer(server);
	const inMemory = (await statfs(folder)).type === TMPFS;
	return [
		`- ${os.availableParallelism()} × ${cpu?.model.trim() ?? 'unknown'}, ${Math.round(os.totalmem() / 1024 ** 3)} GiB, ${os.type()} ${os.release()}; load before the run: ${os.loadavg()[0].toFixed(2)}`,
		`- Node.js ${process.version}, PostgreSQL ${version} on the same machine, its data ${inMemory ? '**in memory (tmpfs): a commit costs nothing here**' : 'on a disk'}`,
		`- server settings: ${settings.map(({ name, value }) => `\`${name} = ${value}\``).join(', ')}`,
		...(quick ? ['- **A quick run: it shows that everything runs. Its numbers say nothing.**'] : []),
	].join('\n');
}

async function readServer({ host, port, user, password }: ServerAddress): Promise<{ version: string; settings: Array<{ name: string; value: string }> }> {
	const client = new Client({ host, port, user, password, database: 'postgres' });
	await client.connect();
	try {
		const { rows } = await client.query<{ name: string; value: string }>('SELECT name, current_setting(name) AS value FROM unnest($1::text[]) AS name', [['server_version', ...SETTINGS]]);
		const [{ value: version }, ...settings] = rows;
		return { version, settings };
	} finally {
		await client.end();
	}
}
