import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { LEASE_OVER, RETRY_DUE } from '../../support/timePassed';
import { Workbench } from '../../support/workbench';
import { endAs, leaveBehind, receive } from './support/recovering';
import type { PollerOrder, PollerReport } from './support/pollerWorker';

/** Several n8n processes with recovery workflows on one claim store. */

jest.setTimeout(180_000);

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterAll(async () => await workbench.close());

/** Polls from real processes, with several workflows each, until nothing is due any more. */
async function pollFromProcesses(processes: number, order: Omit<PollerOrder, 'credential'>): Promise<PollerReport[]> {
	const workers = Array.from({ length: processes }, () => fork(path.join(__dirname, 'support/pollerWorker.ts'), { execArgv: ['--import', require.resolve('tsx')] }));
	try {
		const credential = workbench.credential({ timeoutMs: 30_000 });
		await Promise.all(workers.map(async (worker) => await ask(worker, { ...order, credential })));
		return (await Promise.all(workers.map(async (worker) => await ask(worker, 'go')))) as PollerReport[];
	} finally {
		for (const worker of workers) worker.kill();
	}
}

async function ask(worker: ChildProcess, message: object | string): Promise<unknown> {
	worker.send(message);
	const [answer] = (await Promise.race([
		once(worker, 'message'),
		once(worker, 'exit').then(([code]) => Promise.reject(new Error(`A process ended with ${code}`))),
	])) as [unknown];
	return answer;
}

test('two processes with three workflows each on 1,000 due claims: each claim starts one execution per version, none is left out', async () => {
	const ids = (kind: string, count: number) => Array.from({ length: count }, (_, index) => `${kind}-${index}`);
	const options = { whenLeaseExpires: 'takeOver' };
	const all = { received: ids('received', 400), failed: ids('failed', 200), expired: ids('expired', 200), uncertain: ids('uncertain', 200) };
	await receive(workbench, all.received, { options });
	await endAs(workbench, all.failed, { outcome: 'retryableFailure' }, { options });
	await leaveBehind(workbench, all.expired, { options });
	await endAs(workbench, all.uncertain, { outcome: 'outcomeUncertain' }, { options });
	await workbench.database.query(`UPDATE idempotent_claims SET ${RETRY_DUE} WHERE state = 'retryable_failure'`);
	await workbench.database.query(`UPDATE idempotent_claims SET ${LEASE_OVER} WHERE state = 'processing'`);
	const everyClaim = Object.values(all).flat();
	expect(everyClaim).toHaveLength(1000);

	const first = await pollFromProcesses(2, { workflows: 3, limit: 20 });
	expect(first.flatMap(({ failures }) => failures)).toEqual([]);
	expect(first.flatMap(({ started }) => started).sort()).toEqual(everyClaim.map((id) => `${id}, 2`).sort());
	for (const { started } of first) expect(started.length).toBeGreaterThan(0);

	// None of them is finished; when their leases are over all are due again, under the next version.
	await workbench.database.query(`UPDATE idempotent_claims SET ${LEASE_OVER}`);
	const second = await pollFromProcesses(2, { workflows: 3, limit: 20 });
	expect(second.flatMap(({ started, failures }) => [...started, ...failures]).sort()).toEqual(everyClaim.map((id) => `${id}, 3`).sort());
});
