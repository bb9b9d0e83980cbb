import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { Client } from 'pg';
import { startOwnPostgres, type OwnPostgres } from '../support/ownPostgres';
import { Workbench } from '../support/workbench';
import { claimInPeace } from './support/rig';
import type { ClaimOrder } from './support/nodeProcess';

/** A dropped connection never ends the process that n8n lives in: looked at from outside, with n8n's own log. */

let server: OwnPostgres;
let workbench: Workbench;
let child: ChildProcess;
let log: string;

beforeAll(async () => {
	server = await startOwnPostgres();
	workbench = await Workbench.open({}, server);
	await claimInPeace(workbench, 'first of all');
});
beforeEach(async () => {
	log = '';
	child = fork(path.join(__dirname, 'support/nodeProcess.ts'), [], {
		execArgv: ['--import', require.resolve('tsx')],
		env: { ...process.env, N8N_LOG_LEVEL: 'warn' },
		stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
	});
	for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (log += chunk.toString('utf8')));
	await answer();
});
afterEach(async () => {
	if (child.exitCode === null) child.kill('SIGKILL');
	await workbench.clear();
});
afterAll(async () => await server.remove());

/** What the child says next; it fails when the child ends instead. */
async function answer(): Promise<unknown> {
	const ended = once(child, 'exit').then(([code, signal]) => Promise.reject(new Error(`The process ended (${code ?? signal}): ${log}`)));
	const [said] = (await Promise.race([once(child, 'message'), ended])) as [unknown];
	return said;
}
function order(...executions: string[][]): void {
	child.send({ credential: workbench.credential({ maxConnections: 3, timeoutMs: 5000 }), executions } satisfies ClaimOrder);
}
async function claim(...executions: string[][]): Promise<unknown> {
	order(...executions);
	return await answer();
}
const SESSIONS = `FROM pg_stat_activity WHERE application_name = 'n8n-nodes-idempotent-claim' AND pid <> pg_backend_pid()`;
const sessions = async (which: string) => (await workbench.database.query(`SELECT pid ${SESSIONS} AND ${which}`)).length;
const dropped = () => log.match(/An idle connection to the claim store was dropped/g)?.length ?? 0;
async function untilLogged(lines: number): Promise<void> {
	while (dropped() < lines) {
		if (child.exitCode !== null || child.signalCode !== null) throw new Error(`The process ended: ${log}`);
		await workbench.database.query('SELECT 1');
	}
}
/** The child has nothing left to do: it ends by itself, with success. */
async function dismiss(): Promise<void> {
	const ended = once(child, 'exit');
	child.disconnect();
	expect(await ended).toEqual([0, null]);
	expect(log).not.toMatch(/uncaught|unhandled/i);
}

test('idle sessions are ended: one log line for each, and the process goes on claiming', async () => {
	// The sessions of this process, too, would be counted.
	await workbench.database.query(`SELECT pg_terminate_backend(pid) ${SESSIONS}`);
	expect(await claim(['a'], ['b'], ['c'])).toEqual([['new'], ['new'], ['new']]);
	const { length: open } = await workbench.database.query(`SELECT pg_terminate_backend(pid) ${SESSIONS}`);
	expect(open).toBeGreaterThan(0);
	await untilLogged(open);
	expect(await claim(['a', 'd'])).toEqual([['new', 'duplicate']]);
	expect(dropped()).toBe(open);
	for (const secret of [workbench.database.password, '127.0.0.1']) expect(log).not.toContain(secret);
	await dismiss();
});

test('a busy session is ended: the statement is sent again, and the process goes on', async () => {
	await claimInPeace(workbench, 'held');
	const holder = new Client({ ...workbench.database });
	await holder.connect();
	await holder.query('BEGIN');
	await holder.query(`DELETE FROM idempotent_claims WHERE delivery_id = 'held'`);
	order(['held']);
	while ((await sessions(`wait_event_type = 'Lock'`)) === 0);
	await workbench.database.query(`SELECT pg_terminate_backend(pid) ${SESSIONS} AND wait_event_type = 'Lock'`);
	await holder.query('COMMIT');
	await holder.end();
	expect(await answer()).toEqual([['new']]);
	await dismiss();
});

test.each(['stop', 'kill'] as const)('the server: %s, with idle sessions open; the process goes on, and claims when it is back', async (how) => {
	expect(await claim(['a'], ['b'])).toEqual([['new'], ['new']]);
	await server[how]();
	for (const kinds of (await claim(['c'], ['d'])) as string[][]) expect(kinds).toEqual([expect.stringMatching(/^(store_unreachable|outcome_unknown)$/)]);
	await server.start();
	expect(await claim(['a', 'c'])).toEqual([['new', 'duplicate']]);
	expect(dropped()).toBeGreaterThan(0);
	await dismiss();
});
