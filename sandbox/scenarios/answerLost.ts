import { newEvent } from '../sender';
import type { Scenario } from './row';

export const answerLost: Scenario = {
	title: 'The destination did the work, its answer was lost',
	note: 'Nobody guesses: the record says uncertain, until recovery has found the lead at the destination.',
	async run(row) {
		const event = newEvent();
		const record = 'completed, attempt 1, names its lead';
		const history = ['processing', 'outcome_uncertain', 'completed'];
		await row.sandbox.destination.behave('loseAnswer');
		await row.step('answer lost, lead looked up', event, { answers: [200], calls: 1, leads: 1, record, history }, async () => {
			const answer = await row.deliver(event);
			await row.sandbox.destination.behave('work');
			await row.whenRecovered(event);
			return [answer];
		});
		await row.step('again', event, { answers: [200], calls: 1, leads: 1, record }, async () => [await row.deliver(event)]);
	},
};
