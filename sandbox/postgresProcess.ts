import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { PostgresOptions, RunningPostgres } from './postgres';

/** What the holder reports: the server's address, or why it has none. */
export type HolderReport = Omit<RunningPostgres, 'stop'> | { failure: string };

/**
 * Starts PostgreSQL under a process of its own. Ctrl-C in a terminal goes to a program and all its
 * children: this server must outlive it, because n8n needs its database to shut down.
 */
export async function startPostgresApart(options: PostgresOptions): Promise<RunningPostgres> {
	const holder = fork(path.join(__dirname, 'postgresHolder.ts'), [JSON.stringify(options)], {
		execArgv: ['--import', require.resolve('tsx')],
		detached: true,
	});
	const ended = once(holder, 'exit');
	const report = await Promise.race([
		once(holder, 'message').then(([message]) => message as HolderReport),
		ended.then(() => ({ failure: 'PostgreSQL ended before it was ready.' })),
	]);
	if ('failure' in report) throw new Error(report.failure);
	return {
		...report,
		async stop() {
			if (holder.connected) holder.disconnect();
			await ended;
		},
	};
}
