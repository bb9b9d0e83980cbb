import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { ServerAddress } from './database';
import { freePort } from './freePort';

/** A server that one test owns, because the test takes it down. */
export interface OwnPostgres extends ServerAddress {
	/** Shuts the server down in good order; clients are told. */
	stop(): Promise<void>;
	/** SIGKILL: no goodbye, and whatever was not yet durable is gone. */
	kill(): Promise<void>;
	/** Brings the server back after `stop` or `kill`: same port, same data. */
	start(): Promise<void>;
	/** Stops it if it runs and deletes its data. */
	remove(): Promise<void>;
}

/** Starts a PostgreSQL of its own, in a child process, on a free port. */
export async function startOwnPostgres(): Promise<OwnPostgres> {
	const folder = await mkdtemp(path.join(os.tmpdir(), 'idempotent-claim-own-'));
	// Started by root, the server runs as another user, who must get through this folder.
	await chmod(folder, 0o755);
	const script = path.join(__dirname, 'ownPostgresProcess.ts');
	const args = [path.join(folder, 'postgres'), String(await freePort())];

	const launch = () => fork(script, args, { execArgv: ['--import', require.resolve('tsx')] });
	let holder: ChildProcess | undefined = launch();
	const running = await report(holder);

	const end = async (how: 'stop' | 'kill') => {
		if (!holder) return;
		holder.send(how);
		await once(holder, 'exit');
		holder = undefined;
	};

	return {
		host: running.host,
		port: running.port,
		user: running.user,
		password: running.password,
		stop: async () => await end('stop'),
		kill: async () => await end('kill'),
		async start() {
			holder ??= launch();
			await report(holder);
		},
		async remove() {
			await end('stop');
			await rm(folder, { recursive: true, force: true });
		},
	};
}

async function report(holder: ChildProcess): Promise<ServerAddress> {
	const [message] = (await Promise.race([
		once(holder, 'message'),
		once(holder, 'exit').then(() => Promise.reject(new Error('The PostgreSQL of this test did not start'))),
	])) as [ServerAddress];
	return message;
}
