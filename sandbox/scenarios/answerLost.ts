import type { Scenario } from './row';

export const answerLost: Scenario = {
	title: 'The destination did the work, its answer was lost',
	note: 'Nobody may guess: the record says uncertain until somebody has looked at the destination.',
	async run(row) {
		const event = row.newEvent();
		const uncertain = { answers: [200], calls: 1, leads: 1, record: 'outcome_uncertain, attempt 1' };
		await row.sandbox.destination.behave('loseAnswer');
		await row.step('first', event, uncertain, async () => [await row.deliver(event)]);
		await row.sandbox.destination.behave('work');
		await row.step('again', event, uncertain, async () => [await row.deliver(event)]);
	},
};
