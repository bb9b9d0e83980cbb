import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdtemp, chmod, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from 'pg';
import type { ServerAddress } from './database';
import { freePort } from './freePort';
import type { OwnPostgres } from './ownPostgres';

/** A second server that follows a first one by streaming replication, and can take its place. */
export interface Standby extends ServerAddress {
	/** Resolves once it has all that the primary has committed so far. */
	caughtUp(): Promise<void>;
	/** Makes it a primary; it follows nobody any more. */
	promote(): Promise<void>;
	/** Stops following: what the primary commits from now on does not come here. */
	stopFollowing(): Promise<void>;
	follow(): Promise<void>;
	/** Stops it and deletes its data. */
	remove(): Promise<void>;
}

/** Copies `primary`, which is stopped and started for it, and follows it. Its name for `synchronous_standby_names` is `standby`. */
export async function startStandby(primary: OwnPostgres): Promise<Standby> {
	const [{ data, bin }] = await ask(primary, `SELECT current_setting('data_directory') AS data, (SELECT setting FROM pg_config WHERE name = 'BINDIR') AS bin`);
	const above = await mkdtemp(path.join(os.tmpdir(), 'idempotent-claim-standby-'));
	// Started by root, the server runs as another user, who must get through this folder.
	await chmod(above, 0o755);
	const folder = path.join(above, 'postgres');
	await primary.stop();
	await promisify(execFile)('cp', ['-a', data, folder]);
	await primary.start();

	const { user, password, host } = primary;
	const port = await freePort();
	const line = `host=${host} port=${primary.port} user=${user} password=${password} application_name=standby`;
	await writeFile(path.join(folder, 'standby.signal'), '');
	await appendFile(path.join(folder, 'postgresql.auto.conf'), `primary_conninfo = '${line}'\n`);
	const { uid, gid } = await stat(data);
	const flags = ['-D', folder, '-c', `port=${port}`, '-c', `listen_addresses=${host}`, '-c', 'unix_socket_directories='];
	const server = spawn(path.join(bin, 'postgres'), flags, { uid, gid, stdio: 'ignore' });
	const address = { host, port, user, password };
	while (!(await ask(address, 'SELECT 1').catch(() => undefined))) {
		if (server.exitCode !== null) throw new Error(`The standby did not start: exit code ${server.exitCode}`);
		await sleep(100);
	}

	const following = async (conninfo: string, state: boolean) => {
		await ask(address, `ALTER SYSTEM SET primary_conninfo = '${conninfo}'`);
		await ask(address, 'SELECT pg_reload_conf()');
		while (((await ask(address, 'SELECT 1 FROM pg_stat_wal_receiver WHERE status = $$streaming$$')).length > 0) !== state) await sleep(50);
	};
	return {
		...address,
		async caughtUp() {
			const [{ position }] = await ask(primary, 'SELECT pg_current_wal_flush_lsn() AS position');
			while ((await ask(address, `SELECT 1 WHERE pg_last_wal_replay_lsn() >= '${position}'`)).length === 0) await sleep(20);
		},
		async promote() {
			await ask(address, 'SELECT pg_promote()');
		},
		stopFollowing: async () => await following('', false),
		follow: async () => await following(line, true),
		async remove() {
			server.kill('SIGINT');
			if (server.exitCode === null) await once(server, 'exit');
			await rm(above, { recursive: true, force: true });
		},
	};
}

async function ask(server: ServerAddress, sql: string): Promise<Array<Record<string, string>>> {
	const { host, port, user, password } = server;
	const client = new Client({ host, port, user, password, database: 'postgres' });
	await client.connect();
	try {
		return (await client.query<Record<string, string>>(sql)).rows;
	} finally {
		await client.end();
	}
}
