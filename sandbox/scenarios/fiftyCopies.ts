import { newEvent } from '../sender';
import type { Scenario } from './row';

const COPIES = 50;

export const fiftyCopies: Scenario = {
	title: `${COPIES} copies at once`,
	async run(row) {
		const event = newEvent();
		const expected = { answers: Array<number>(COPIES).fill(200), calls: 1, leads: 1, record: 'completed, attempt 1, names its lead' };
		await row.step('all together', event, expected, async () => await Promise.all(expected.answers.map(() => row.deliver(event))));
	},
};
