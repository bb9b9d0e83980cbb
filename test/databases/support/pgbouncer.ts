import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type QueryResultRow } from 'pg';
import { testServer, type ServerAddress } from '../../support/database';
import { freePort } from '../../support/freePort';

/** Debian's PgBouncer between the code under test and PostgreSQL, on a free port of loopback. */
export interface PgBouncer extends ServerAddress {
	/** SIGINT: as an administrator stops it; it tells its clients. */
	stop(): Promise<void>;
	/** SIGKILL: no goodbye. */
	kill(): Promise<void>;
	/** Brings it back after `stop` or `kill`: same port, same settings. */
	start(): Promise<void>;
	/** A command of the admin console, such as `SHOW SERVERS`. */
	admin<Row extends QueryResultRow = QueryResultRow>(command: string): Promise<Row[]>;
	/** Stops it if it runs and deletes its files. */
	remove(): Promise<void>;
}

export interface PgBouncerOptions {
	/** The PostgreSQL behind it; by default the one of this test run. */
	server?: ServerAddress;
	/** Lines of pgbouncer.ini: `{ pool_mode: 'transaction', default_pool_size: 2 }`. */
	settings?: Record<string, string | number>;
}

const PROGRAM = 'pgbouncer';
/** It refuses to run as root; this user exists wherever there is a root. */
const NOBODY = 65534;

/** @throws Error in one sentence when PgBouncer is not installed */
export function requirePgBouncer(): void {
	const { error } = spawnSync(PROGRAM, ['--version'], { env: environment() });
	if (error) throw new Error('These tests need PgBouncer: install it with "apt-get install pgbouncer" (Debian, Ubuntu), the program has to be in PATH or /usr/sbin');
}

/** Starts a PgBouncer; startup parameters other than its own few are refused, as by its defaults. */
export async function startPgBouncer({ server = testServer(), settings = {} }: PgBouncerOptions = {}): Promise<PgBouncer> {
	const folder = await mkdtemp(path.join(os.tmpdir(), 'idempotent-claim-pooler-'));
	// Started by root, it runs as another user, who must read its files.
	await chmod(folder, 0o755);
	const port = await freePort();
	const lines = {
		listen_addr: '127.0.0.1',
		listen_port: port,
		unix_socket_dir: '',
		auth_type: 'scram-sha-256',
		auth_file: path.join(folder, 'userlist.txt'),
		admin_users: server.user,
		max_client_conn: 300,
		ignore_startup_parameters: '',
		...settings,
	};
	const ini = path.join(folder, 'pgbouncer.ini');
	const database = `* = host=${server.host} port=${server.port}`;
	await writeFile(ini, ['[databases]', database, '[pgbouncer]', ...Object.entries(lines).map(([name, value]) => `${name} = ${value}`), ''].join('\n'));
	await writeFile(lines.auth_file, `"${server.user}" "${server.password}"\n`);

	let pooler: ChildProcess | undefined;
	const log: string[] = [];
	const start = async () => {
		if (pooler) return;
		const asNobody = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
		const child = spawn(PROGRAM, [ini], { ...asNobody, cwd: folder, env: environment(), stdio: ['ignore', 'ignore', 'pipe'] });
		child.stderr.on('data', (text: Buffer) => log.push(String(text)));
		pooler = child;
		let failed = false;
		child.once('error', () => (failed = true)).once('exit', () => (failed = true));
		while (!(await listens(port))) {
			if (failed) throw new Error(`PgBouncer did not start:\n${log.slice(-15).join('')}`);
			await sleep(20);
		}
	};
	const end = async (signal: 'SIGINT' | 'SIGKILL') => {
		const child = pooler;
		pooler = undefined;
		if (!child || child.exitCode !== null || child.signalCode !== null) return;
		const gone = once(child, 'exit');
		child.kill(signal);
		await gone;
	};

	await start();
	return {
		host: '127.0.0.1',
		port,
		user: server.user,
		password: server.password,
		start,
		stop: async () => await end('SIGINT'),
		kill: async () => await end('SIGKILL'),
		async admin<Row extends QueryResultRow>(command: string) {
			const client = new Client({ host: '127.0.0.1', port, user: server.user, password: server.password, database: 'pgbouncer' });
			await client.connect();
			try {
				return (await client.query<Row>(command)).rows;
			} finally {
				await client.end();
			}
		},
		async remove() {
			await end('SIGKILL');
			await rm(folder, { recursive: true, force: true });
		},
	};
}

/** Debian puts it where only root's PATH looks. */
function environment(): NodeJS.ProcessEnv {
	return { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin` };
}

async function listens(port: number): Promise<boolean> {
	const line = createConnection({ host: '127.0.0.1', port });
	try {
		await once(line, 'connect');
		return true;
	} catch {
		return false;
	} finally {
		line.destroy();
	}
}
