import { newEvent } from '../sender';
import type { Scenario } from './row';

export const destinationFails: Scenario = {
	title: 'The destination refuses, after the claim',
	note: 'Surely nothing was done: recovery tries again when the retry is due, whether the sender does or not.',
	async run(row) {
		const event = newEvent();
		const failed = { answers: [503], calls: 1, leads: 0, record: 'retryable_failure, attempt 1' };
		await row.sandbox.destination.behave('refuse');
		await row.step('first', event, failed, async () => [await row.deliver(event)]);
		await row.sandbox.destination.behave('work');
		await row.step('again, before its retry is due', event, failed, async () => [await row.deliver(event)]);
		const after = { calls: 2, leads: 1, record: 'completed, attempt 2, names its lead' };
		const history = ['processing', 'retryable_failure', 'processing', 'completed'];
		await row.step('the retry is due', event, { answers: [], ...after, history }, async () => {
			await row.age(event, `retry_at = now() - interval '1 second'`);
			await row.whenRecovered(event);
			return [];
		});
		await row.step('again', event, { answers: [200], ...after }, async () => [await row.deliver(event)]);
	},
};
