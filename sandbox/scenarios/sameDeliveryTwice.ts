import { newEvent } from '../sender';
import type { Scenario } from './row';

export const sameDeliveryTwice: Scenario = {
	title: 'The same delivery, twice',
	async run(row) {
		const event = newEvent();
		const after = { calls: 1, leads: 1, record: 'completed, attempt 1, names its lead' };
		await row.step('first', event, { answers: [200], ...after }, async () => [await row.deliver(event)]);
		await row.step('again', event, { answers: [200], ...after }, async () => [await row.deliver(event)]);
	},
};
