import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { settingsFor } from '../store/support/claims';
import type { ClaimingOrder, ClaimingReport } from './support/claimingProcess';

/** A process that claims day and night holds on to nothing, and does not stay alive for its pool. */

jest.setTimeout(300_000);

const children: ChildProcess[] = [];
afterAll(() => children.forEach((child) => child.kill()));

let database: TestDatabase;
beforeEach(async () => (database = await createTestDatabase()));
afterEach(async () => await database.drop());

/** Everything that the process reports, and its exit code. */
async function claimInAProcess(order: ClaimingOrder): Promise<{ reports: ClaimingReport[]; exitCode: number }> {
	const child = fork(path.join(__dirname, 'support/claimingProcess.ts'), { execArgv: ['--expose-gc', '--import', require.resolve('tsx')] });
	children.push(child);
	const reports: ClaimingReport[] = [];
	child.on('message', (report) => reports.push(report as ClaimingReport));
	child.send(order);
	const [exitCode] = (await once(child, 'exit')) as [number];
	return { reports, exitCode };
}

test('100,000 claims, with outcomes and copies: no memory and no socket more than after 20,000, and the process ends by itself', async () => {
	const settings = settingsFor(database, { maxConnections: 5 });
	const { reports, exitCode } = await claimInAProcess({ settings, reportsAt: [20_000, 60_000, 100_000], batch: 500, singles: 1700 });
	expect(reports.map(({ claims }) => claims)).toEqual([20_000, 60_000, 100_000]);
	for (const { answers } of reports) expect(Object.keys(answers).sort()).toEqual(['duplicate completed', 'new first_delivery', 'recorded']);
	expect(reports.reduce((sum, { answers }) => sum + answers['new first_delivery'], 0)).toBe(100_000);
	expect(await database.query('SELECT count(*)::int AS count FROM idempotent_claims')).toEqual([{ count: 100_000 }]);

	const [first, , last] = reports;
	// A hundred bytes kept of each of the 80,000 claims between the two would be 8 MB.
	expect((last.heap - first.heap) / 1024 / 1024).toBeLessThan(3);
	// The pool opens a connection when it is needed, the last of them perhaps late.
	expect(last.descriptors).toBeLessThan(first.descriptors + settings.maxConnections);
	expect(last.pending).toEqual(first.pending);
	// With its pool still open: allowExitOnIdle.
	expect(exitCode).toBe(0);
	console.log(`Heap: ${reports.map(({ heap }) => (heap / 1024 / 1024).toFixed(1)).join(', ')} MB`);
});
