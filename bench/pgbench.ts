import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { TestDatabase } from '../test/support/database';
import type { Bench } from './section';

const run = promisify(execFile);

/** By the search path, or where Debian puts it. */
const PLACES = ['pgbench', '/usr/bin/pgbench'];

/** PostgreSQL's own program for measuring, where it is installed. */
export interface Pgbench {
	readonly program: string;
	/** As it says itself. */
	readonly version: string;
}

export async function findPgbench(): Promise<Pgbench | undefined> {
	for (const program of PLACES) {
		const version = await run(program, ['--version']).then(({ stdout }) => stdout.trim(), () => undefined);
		if (version !== undefined) return { program, version };
	}
	return undefined;
}

/** The statement of the loop by hand, with its own key and token made by the server. */
const SCRIPT = `INSERT INTO by_hand (id, token) VALUES (gen_random_uuid()::text, gen_random_uuid()::text) ON CONFLICT (id) DO NOTHING RETURNING id, token;\n`;

/**
 * How many of the loop's inserts pgbench does in a second. As the others do, it has each statement parsed and planned
 * anew. The table must be there.
 */
export async function insertsPerSecond(bench: Bench, { program }: Pgbench, { host, port, user, password, database }: TestDatabase, clients: number, inserts: number): Promise<number> {
	const script = path.join(bench.folder, 'insert.sql');
	await writeFile(script, SCRIPT);
	const threads = Math.min(clients, availableParallelism());
	const args = ['-h', host, '-p', String(port), '-U', user, '-n', '-M', 'extended', '-c', String(clients), '-j', String(threads), '-t', String(Math.ceil(inserts / clients)), '-f', script, database];
	const { stdout } = await run(program, args, { env: { ...process.env, PGPASSWORD: password }, signal: bench.cancelSignal });
	const [, rate] = /^tps = ([\d.]+) \((?:without|excluding)/m.exec(stdout) ?? [];
	if (rate === undefined) throw new Error(`pgbench did not say how fast it was:\n${stdout}`);
	return Number(rate);
}
