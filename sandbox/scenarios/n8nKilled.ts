import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer, LeadEvent, Row, Scenario } from './row';

export const n8nKilled: Scenario = {
	title: 'n8n is killed after the claim, before the action',
	note: 'The unfinished work stays visible, and is not repeated; a recovery workflow will finish it.',
	async run(row) {
		const event = row.newEvent();
		const unfinished = { calls: 1, leads: 0, record: 'processing, attempt 1' };
		await row.sandbox.destination.behave('hang');
		await row.step('killed', event, { answers: ['no answer'], ...unfinished }, async () => [await deliverAndKill(row, event)]);
		await row.sandbox.destination.behave('work');
		await row.sandbox.restartN8n();
		await row.step('n8n is back, sent again', event, { answers: [200], ...unfinished }, async () => [await row.deliver(event)]);
		await row.age(event, `lease_expires_at = now() - interval '1 second'`);
		const uncertain = { calls: 1, leads: 0, record: 'outcome_uncertain, attempt 1' };
		await row.step('sent again when the lease is over', event, { answers: [200], ...uncertain }, async () => [await row.deliver(event)]);
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
