import fc from 'fast-check';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { newEvent, type LeadEvent } from '../../sandbox/sender';
import { countBy, inWords } from '../support/counting';
import { order } from './support/address';
import { LeadEvents } from './support/leadEvents';
import { N8n } from './support/n8n';
import { WORKERS, type QueueModeAddress, type WorkerName } from './support/queueMode';
import { Session } from './support/session';
import { until } from './support/until';

/**
 * n8n in queue mode: main, two workers and a webhook process, with Redis between them. The examples run in it as they are.
 *
 *   QUEUE_SEED=… npm run test:e2e -- queue                           the same random moments once more
 *   QUEUE_DELIVERIES=1000 QUEUE_KILLS=10 npm run test:e2e -- queue   more of it
 */

const SECONDS_TO_START = 300;
/** Few, for the time's sake: 1,000 take some five minutes. */
const DELIVERIES = Number(process.env.QUEUE_DELIVERIES ?? 60);
const COPIES = 3;
const DELIVERIES_AT_ONCE = 4;

const SEED = Number(process.env.QUEUE_SEED ?? Date.now() % 1_000_000_000);
const KILLS = Number(process.env.QUEUE_KILLS ?? 3);
/** Sent before each kill, about as much as the workers get done in some seconds. */
const STORED_PER_KILL = 30;
/** More kills, should none of them have met a worker at work. */
const MORE_KILLS = 7;
const PACE_MS = 50;
/** When a worker is killed, counted from when something of that has been done. */
const KILLED_AFTER_MS = { min: 0, max: 1_500 };
/** An action here takes milliseconds; one that waited for a worker for so long finds with Extend Lease that it has lost its claim. */
const UNCHANGED_SECONDS = 30;
const SECONDS_TO_SETTLE = 600;

let queue: QueueModeAddress;
let n8n: N8n;
let events: LeadEvents;

beforeAll(async () => {
	queue = await order<QueueModeAddress>('queue');
	n8n = new N8n(Session.of(queue));
	events = new LeadEvents(queue);
}, SECONDS_TO_START * 1000);

afterAll(async () => {
	await events?.close();
	await order('leaveQueue');
}, SECONDS_TO_START * 1000);

/** How many executions each worker has finished since it was first started. */
async function finishedBy(): Promise<Record<WorkerName, number>> {
	const counts = await Promise.all(WORKERS.map(async (worker) => [worker, (await readFile(queue.workerLogs[worker], 'utf8')).split('Worker finished execution').length - 1] as const));
	return Object.fromEntries(counts) as Record<WorkerName, number>;
}

test('a manual run in the editor reaches the nodes on the workers', async () => {
	const { executionId } = await n8n.runManually(queue.workflows.housekeeping, 'Every Night');
	expect((await n8n.finishedExecution(String(executionId))).status).toBe('success');
	const finished = await finishedBy();
	expect(finished.worker1 + finished.worker2).toBeGreaterThan(0);
}, 120_000);

test(`deliveries in copies that land on both workers: one action each, and success for every copy (${DELIVERIES} times ${COPIES})`, async () => {
	const before = await finishedBy();
	const deliveries = Array.from({ length: DELIVERIES }, () => newEvent());
	const answers: Array<number | string> = [];
	const begun = Date.now();
	const left = [...deliveries];
	const deliverOn = async () => {
		for (let event = left.pop(); event; event = left.pop()) {
			const copies = Array.from({ length: COPIES }, async () => await events.send('guarded-webhook', event));
			answers.push(...(await Promise.all(copies)));
		}
	};
	await Promise.all(Array.from({ length: DELIVERIES_AT_ONCE }, deliverOn));
	const seconds = (Date.now() - begun) / 1000;

	expect(countBy(answers)).toEqual({ 200: DELIVERIES * COPIES });
	const settlements = await events.settlements(deliveries);
	expect(countBy(settlements, ({ state, attempt }) => `${state}, attempt ${attempt}`)).toEqual({ 'completed, attempt 1': DELIVERIES });
	expect(countBy(await events.verdicts(settlements))).toEqual({ 'one lead': DELIVERIES });

	const now = await finishedBy();
	const shares = WORKERS.map((worker) => now[worker] - before[worker]);
	for (const share of shares) expect(share).toBeGreaterThan((DELIVERIES * COPIES) / 4);
	console.log(`${answers.length} requests in ${seconds.toFixed(0)} s, ${shares.join(' and ')} by the two workers`);
}, 900_000);

test(`workers killed under load: one lead of each delivery to the inbox, or a person is told why not (${KILLS} kills, seed ${SEED})`, async () => {
	const deliveries: LeadEvent[] = [];
	const states = async () => countBy(await events.settlements(deliveries), ({ state }) => state);
	const kills: string[] = [];
	let workCutOff = 0;
	let repeats = 0;
	for (const [turn, ms] of fc.sample(fc.integer(KILLED_AFTER_MS), { seed: SEED, numRuns: KILLS + MORE_KILLS }).entries()) {
		if (turn >= KILLS && workCutOff > 0) break;
		const doneBefore = (await states()).completed ?? 0;
		const more = Array.from({ length: STORED_PER_KILL }, () => newEvent());
		deliveries.push(...more);
		const sending = events.sendAll('durable-inbox', more, PACE_MS);
		await until('something gets done', 120, async () => ((await states()).completed ?? 0) > doneBefore);
		await sleep(ms);
		const worker = WORKERS[turn % WORKERS.length];
		await order(`kill/${worker}`);
		const left = await states();
		workCutOff += (left.processing ?? 0) + (left.outcome_uncertain ?? 0);
		kills.push(`${worker}: ${inWords(left)}`);
		await order(`start/${worker}`);
		repeats += await sending;
	}
	await until('nothing is left to be done', SECONDS_TO_SETTLE, async () => {
		await events.endLeases(UNCHANGED_SECONDS);
		const { completed = 0, needs_review = 0 } = await states();
		return completed + needs_review === deliveries.length;
	});

	const settlements = await events.settlements(deliveries);
	const verdicts = await events.verdicts(settlements);
	console.log(`Seed ${SEED}. Killed:\n  ${kills.join('\n  ')}\nThe sender had to come again ${repeats} times. In the end: ${inWords(countBy(verdicts))}; attempts: ${inWords(countBy(settlements, ({ attempt }) => String(attempt)))}.`);
	expect(verdicts.filter((verdict) => verdict !== 'one lead' && verdict !== 'waits for a person')).toEqual([]);
	expect(settlements.map(({ deliveryId }) => deliveryId)).toEqual(deliveries.map(({ id }) => id).sort());
	expect(workCutOff).toBeGreaterThan(0);
}, 1_200_000);
