import { newEvent } from '../sender';
import type { Scenario } from './row';

export const storeDown: Scenario = {
	title: 'The claim store is down',
	async run(row) {
		const event = newEvent();
		await row.sandbox.storeLine.cut();
		await row.step('while it is down', event, { answers: [503], calls: 0, leads: 0, record: 'none' }, async () => [await row.deliver(event)]);
		await row.sandbox.storeLine.mend();
		const after = { calls: 1, leads: 1, record: 'completed, attempt 1, names its lead' };
		await row.step('sent again when it is back', event, { answers: [200], ...after }, async () => [await row.deliver(event)]);
	},
};
