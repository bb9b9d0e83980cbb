import { once } from 'node:events';
import { findFreePort } from '../../../sandbox/ports';

export interface RunningRedis {
	port: number;
	stop: () => Promise<void>;
}

/** Starts a Redis that keeps nothing, on loopback. @throws Error that says what to install where there is none */
export async function startRedis(cancelSignal: AbortSignal): Promise<RunningRedis> {
	// execa is an ES module: from CommonJS only import() gets hold of it.
	const { execa } = await import('execa');
	const port = await findFreePort();
	const server = execa('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'], { cancelSignal, reject: false, all: true, stdin: 'ignore' });
	let printed = '';
	await new Promise<void>((resolve, reject) => {
		server.all.on('data', (chunk: Buffer) => {
			printed += chunk.toString('utf8');
			if (printed.includes('Ready to accept connections')) resolve();
		});
		void server.then(({ code }) => reject(new Error(code === 'ENOENT' ? 'There is no redis-server here. Install the Debian package: apt-get install redis-server' : `Redis did not start:\n${printed}`)));
	});
	return {
		port,
		async stop() {
			if (server.exitCode !== null) return;
			const ended = once(server, 'exit');
			server.kill('SIGTERM');
			await ended;
		},
	};
}
