import { newEvent } from '../sender';
import type { Scenario } from './row';

export const changedDetails: Scenario = {
	title: 'The same ID, other details changed',
	async run(row) {
		const event = newEvent();
		const changed = { ...event, lead: { ...event.lead, name: 'Another Name' }, redelivery: true };
		const after = { calls: 1, leads: 1, record: 'completed, attempt 1, names its lead' };
		await row.step('first', event, { answers: [200], ...after }, async () => [await row.deliver(event)]);
		await row.step('again, with another name', event, { answers: [200], ...after }, async () => [await row.deliver(changed)]);
	},
};
