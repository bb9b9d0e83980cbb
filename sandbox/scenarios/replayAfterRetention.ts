import { newEvent } from '../sender';
import type { Scenario } from './row';

export const replayAfterRetention: Scenario = {
	title: 'A finished delivery, replayed after its retention ended and it was purged',
	note: 'Documented: what was forgotten is new again. Keep the retention longer than the sender redelivers.',
	async run(row) {
		const event = newEvent();
		const record = 'completed, attempt 1, names its lead';
		await row.step('first', event, { answers: [200], calls: 1, leads: 1, record }, async () => [await row.deliver(event)]);
		await row.purge(event);
		await row.step('again, within its retention', event, { answers: [200], calls: 1, leads: 1, record }, async () => [await row.deliver(event)]);
		await row.age(event, `purge_after = now() - interval '1 second'`);
		await row.purge(event);
		await row.step('again, forgotten: it is new', event, { answers: [200], calls: 2, leads: 2, record }, async () => [await row.deliver(event)]);
	},
};
