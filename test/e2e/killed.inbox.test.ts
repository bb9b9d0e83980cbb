import fc from 'fast-check';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'pg';
import { newEvent } from '../../sandbox/sender';
import { countBy, inWords } from '../support/counting';
import { order, sandboxAddress } from './support/address';
import type { ClaimRow } from './support/claimTable';
import { LeadEvents } from './support/leadEvents';
import { until } from './support/until';

/**
 * n8n is killed (SIGKILL) under deliveries to the examples; recovery, which is all in the examples, makes one lead of each.
 *
 *   KILLED_INBOX_SEED=… npm run test:e2e -- killed.inbox                                   the same random moments once more
 *   KILLED_INBOX_DELIVERIES=500 KILLED_INBOX_KILLS=10 npm run test:e2e -- killed.inbox     more of it
 */

const SEED = Number(process.env.KILLED_INBOX_SEED ?? Date.now() % 1_000_000_000);
/** Few, for the time's sake: 500 and 10 take some ten minutes on a quiet machine. */
const DELIVERIES = Number(process.env.KILLED_INBOX_DELIVERIES ?? 60);
const KILLS = Number(process.env.KILLED_INBOX_KILLS ?? 2);
/** When n8n is killed, counted from when it is up, or every other time from when recovery has got something done: n8n's triggers wake up some ten seconds later. */
const KILLED_AFTER_MS = { min: 200, max: 6_000 };
/** A delivery every so often, so that they are not all there before the last kill. */
const PACE_MS = 200;
const SECONDS_TO_SETTLE = 900;

const events = new LeadEvents();
const store = new Pool({ ...sandboxAddress().claimStoreDatabase, max: 2 });

afterAll(async () => {
	await events.destination.behave('work');
	await events.close();
	await store.end();
});

/**
 * Like a process manager, starts n8n again when it ends while it starts: n8n 2.41 does so, once, where an execution was killed before
 * its start was on record (its insights read the time of that start).
 */
async function restartN8n(): Promise<void> {
	await order('restart').catch(async () => await order('restart'));
}

/** Kills n8n, and waits until nothing that it sent to the claim store is still being carried out. */
async function killN8n(): Promise<void> {
	await order('kill');
	await until('nobody is connected to the claim store', 30, async () => {
		const { rows } = await store.query(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'n8n-nodes-idempotent-claim'`);
		return rows.length === 0;
	});
}

const isSettled = ({ state }: ClaimRow) => state === 'completed' || state === 'needs_review';

test('killed while the action is under way: n8n has the claims reported when it is back, and each becomes one lead', async () => {
	const guarded = newEvent();
	const stored = newEvent();
	await events.destination.behave('hang');
	const answer = events.send('guarded-webhook', guarded);
	expect(await events.send('durable-inbox', stored)).toBe(200);
	await until('both requests hang', 60, async () => (await events.destination.calls(guarded.lead.email)) + (await events.destination.calls(stored.lead.email)) === 2);
	await killN8n();
	expect(await answer).toBe('no answer');
	await events.destination.behave('work');
	await restartN8n();

	for (const event of [guarded, stored]) {
		// Their leases are not over: it is the error workflow that n8n runs for what it finds unfinished.
		await events.whenIn('completed', event);
		const found = await events.found(event);
		expect(found).toEqual({ state: 'completed', attempt: 2, reference: found.leads[0], reason: null, leads: [expect.stringMatching(/^\d+$/)] });
		expect((await events.story(event)).slice(-5)).toEqual([
			expect.stringMatching(/^outcome_uncertain \(Execution \d+ failed at "Create Lead": /),
			'outcome_uncertain (reconciliation)',
			'retryable_failure (Looked up at the destination: not there)',
			'processing (retry)',
			'completed',
		]);
		expect(await events.send('durable-inbox', event)).toBe(200);
		expect((await events.found(event)).leads).toEqual(found.leads);
	}
}, 300_000);

test(`killed ${KILLS} times under ${DELIVERIES} deliveries: one lead of each, or a person is told why not (seed ${SEED})`, async () => {
	const deliveries = Array.from({ length: DELIVERIES }, () => newEvent());
	const rows = async () => await events.settlements(deliveries);
	const completed = async () => (await rows()).filter(({ state }) => state === 'completed').length;
	const sending = events.sendAll('durable-inbox', deliveries, PACE_MS);

	const kills: string[] = [];
	let workCutOff = 0;
	for (const [turn, ms] of fc.sample(fc.integer(KILLED_AFTER_MS), { seed: SEED, numRuns: KILLS }).entries()) {
		const inRecovery = turn % 2 === 1;
		const doneBefore = await completed();
		if (inRecovery) await until('recovery gets something done', 120, async () => (await completed()) > doneBefore);
		// The last time some actions are under way, whatever the moment.
		if (turn === KILLS - 1) {
			await events.destination.behave('hang');
			await until('an action is under way', 120, async () => (await rows()).some(({ state }) => state === 'processing'));
		}
		await sleep(ms);
		await killN8n();
		await events.destination.behave('work');
		const states = countBy(await rows(), ({ state }) => state);
		workCutOff += (states.processing ?? 0) + (states.outcome_uncertain ?? 0);
		kills.push(`${ms} ms after ${inRecovery ? 'recovery began' : 'its start'}: ${inWords(states)}`);
		expect(states.completed ?? 0).toBeLessThan(DELIVERIES);
		await events.endLeases();
		await restartN8n();
	}
	const repeats = await sending;
	await until('nothing is left to be done', SECONDS_TO_SETTLE, async () => (await rows()).filter(isSettled).length === DELIVERIES).catch(async (failure: Error) => {
		const found = await rows();
		const left = found.filter((row) => !isSettled(row)).map(({ deliveryId, history }) => `${deliveryId}: ${history.map(({ state, version, reason }) => `${state} ${version} (${reason})`).join(', ')}`);
		throw new Error([failure.message, `${found.length} of ${DELIVERIES} are stored; not settled:`, ...left].join('\n'));
	});

	const records = await rows();
	const verdicts = await events.verdicts(records);
	console.log(`Seed ${SEED}. n8n was killed:\n  ${kills.join('\n  ')}\nThe sender had to come again ${repeats} times. In the end: ${inWords(countBy(verdicts))}; attempts: ${inWords(countBy(records, ({ attempt }) => String(attempt)))}.`);
	// Doubled is none at all: a dead n8n's request is at the destination before the look-up, or never will be.
	expect(verdicts.filter((verdict) => verdict !== 'one lead' && verdict !== 'waits for a person')).toEqual([]);
	expect(records.map(({ deliveryId }) => deliveryId)).toEqual(deliveries.map(({ id }) => id).sort());
	expect(workCutOff).toBeGreaterThan(0);
}, 2_700_000);
