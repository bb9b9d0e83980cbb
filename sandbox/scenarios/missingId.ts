import { newEvent } from '../sender';
import type { Scenario } from './row';

export const missingId: Scenario = {
	title: 'No delivery ID',
	async run(row) {
		const { id: _id, ...event } = newEvent();
		await row.step('without the field', event, { answers: [400], calls: 0, leads: 0, record: 'none' }, async () => [await row.deliver(event)]);
	},
};
