import { newEvent } from '../sender';
import type { Scenario } from './row';

export const sameEmail: Scenario = {
	title: 'A new delivery with the same e-mail address',
	async run(row) {
		const first = newEvent();
		const second = { ...first, id: newEvent().id };
		const record = 'completed, attempt 1, names its lead';
		await row.step('first', first, { answers: [200], calls: 1, leads: 1, record }, async () => [await row.deliver(first)]);
		await row.step('another ID', second, { answers: [200], calls: 2, leads: 2, record }, async () => [await row.deliver(second)]);
	},
};
