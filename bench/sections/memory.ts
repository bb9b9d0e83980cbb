import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { ClaimingOrder, ClaimingReport } from '../../test/process/support/claimingProcess';
import { sessions } from '../../test/process/support/sessions';
import { settingsFor } from '../../test/store/support/claims';
import { createTestDatabase, type TestDatabase } from '../../test/support/database';
import { CONNECTIONS } from '../contestant';
import { bytes, number, table } from '../markdown';
import type { Bench, Section } from '../section';

/** The first claims are not counted: until then the code is compiled and the connections are opened. */
const FULL = { before: 20_000, claims: 100_000, batch: 500, singles: 2000 };
const QUICK = { before: 40, claims: 200, batch: 20, singles: 20 };

interface Look extends ClaimingReport {
	/** Of the pool, as the server counts them. */
	sessions: number;
}

/** What a process that claims all day holds on to. */
export const section: Section = {
	name: 'memory',
	title: 'Memory and sockets',
	async measure(bench) {
		const { before, claims, batch, singles } = bench.quick ? QUICK : FULL;
		bench.tell(`${claims} claims in one process`);
		const database = await createTestDatabase(bench.server);
		const order = { settings: settingsFor(database, { maxConnections: CONNECTIONS }), reportsAt: [before, before + claims], batch, singles };
		const [first, last] = await looks(bench, database, order);
		await database.drop();
		const row = (what: string, of: (look: Look) => number, format = number) => [what, format(of(first)), format(of(last)), format(of(last) - of(first))];
		return {
			blocks: [
				`One process with one store of ${CONNECTIONS} connections, after ${number(before)} claims and after ${number(claims)} more. Of each call's claims a tenth is completed and comes again. ` +
					`Calls have ${batch} deliveries, or one each with 20 calls at once. The heap is looked at after a garbage collection.`,
				table(
					['', `after ${number(before)} claims`, `after ${number(before + claims)} claims`, 'more'],
					[
						row('heap', ({ heap }) => heap, signedBytes),
						row('open files and sockets', ({ descriptors }) => descriptors),
						row('sessions at the server', ({ sessions }) => sessions),
						row('pending timers and requests', ({ pending }) => Object.values(pending).reduce((sum, count) => sum + count, 0)),
					],
				),
			],
			goals: [],
		};
	},
};

function signedBytes(value: number): string {
	return `${value < 0 ? '−' : ''}${bytes(Math.abs(value))}`;
}

/** A process of its own, so that the heap is the store's alone. @throws Error when it ends before it has told everything */
async function looks(bench: Bench, database: TestDatabase, order: ClaimingOrder): Promise<Look[]> {
	const script = path.join(__dirname, '../../test/process/support/claimingProcess.ts');
	const child = fork(script, { execArgv: ['--expose-gc', '--import', require.resolve('tsx')], signal: bench.cancelSignal });
	// Ended by the signal it reports that here; then nobody waits any more.
	child.on('error', () => {});
	const looking: Array<Promise<Look>> = [];
	child.on('message', (report: ClaimingReport) => looking.push(sessions(database).then((count) => ({ ...report, sessions: count }))));
	child.send(order);
	await once(child, 'disconnect');
	// It would stay until its idle connections have gone.
	child.kill();
	const found = await Promise.all(looking);
	if (found.length < order.reportsAt.length) throw new Error('The process that claims ended too early');
	for (const { answers } of found) {
		const wrong = Object.keys(answers).filter((answer) => !['new first_delivery', 'duplicate completed', 'recorded'].includes(answer));
		if (wrong.length > 0) throw new Error(`Of the claims some are "${wrong.join('", "')}"`);
	}
	return found;
}
