import { setTimeout as sleep } from 'node:timers/promises';
import { newEvent, type LeadEvent } from '../sender';
import type { Answer, Row, Scenario } from './row';

export const n8nKilled: Scenario = {
	title: 'n8n is killed after the claim, before the action is done',
	note: 'Nobody could know that nothing was done: recovery asks the destination first, and only then acts.',
	async run(row) {
		const event = newEvent();
		await row.sandbox.destination.behave('hang');
		const unfinished = { calls: 1, leads: 0, record: 'processing, attempt 1' };
		await row.step('killed', event, { answers: ['no answer'], ...unfinished }, async () => [await deliverAndKill(row, event)]);
		await row.sandbox.destination.behave('work');
		const after = { calls: 2, leads: 1, record: 'completed, attempt 2, names its lead' };
		const history = ['processing', 'outcome_uncertain', 'retryable_failure', 'processing', 'completed'];
		await row.step('n8n is back, the lease over', event, { answers: [], ...after, history }, async () => {
			await row.age(event, `lease_expires_at = now() - interval '1 second'`);
			await row.sandbox.restartN8n();
			await row.whenRecovered(event);
			return [];
		});
		await row.step('sent again', event, { answers: [200], ...after }, async () => [await row.deliver(event)]);
	},
};

/** Kills n8n once the destination holds its request: claimed, and nothing done yet. */
async function deliverAndKill(row: Row, event: LeadEvent): Promise<Answer> {
	const answer = row.deliver(event);
	while ((await row.sandbox.destination.calls(event.lead.email)) === 0) {
		const early = await Promise.race([answer, sleep(50)]);
		if (early !== undefined) return early;
	}
	await row.sandbox.killN8n();
	return await answer;
}
