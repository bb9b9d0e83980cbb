import { newEvent } from '../sender';
import type { Scenario } from './row';

const MALFORMED: Array<[string, unknown]> = [
	['an object', { value: 'evt_1' }],
	['white space around it', ' evt_1 '],
	['the text "undefined"', 'undefined'],
	['a fraction', 1.5],
];

export const malformedId: Scenario = {
	title: 'A malformed delivery ID',
	async run(row) {
		for (const [what, id] of MALFORMED) {
			const event = { ...newEvent(), id };
			await row.step(what, event, { answers: [400], calls: 0, leads: 0, record: 'none' }, async () => [await row.deliver(event)]);
		}
	},
};
