/**
 * Child of `ownPostgres.ts`: holds one PostgreSQL server and obeys its parent. Its own process
 * because the server's npm package is an ES module, which jest's module registry cannot load.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { startPostgres } from '../../sandbox/postgres';

const [dataFolder, port] = process.argv.slice(2);

async function hold(): Promise<void> {
	const server = await startPostgres({ dataFolder, port: Number(port) });
	const pid = Number((await readFile(path.join(dataFolder, 'postmaster.pid'), 'utf8')).split('\n')[0]);

	const stop = async () => {
		await server.stop();
		process.exit(0);
	};
	const kill = async () => {
		process.kill(pid, 'SIGKILL');
		// Until this process has reaped it, a new server takes its PID file for a living server's.
		while (exists(pid)) await setImmediate();
		process.exit(0);
	};
	process.on('message', (how) => void (how === 'kill' ? kill() : stop()));
	process.on('disconnect', () => void stop());

	const { host, user, password } = server;
	process.send?.({ host, port: server.port, user, password });
}

function exists(pid: number): boolean {
	try {
		return process.kill(pid, 0);
	} catch {
		return false;
	}
}

void hold();
