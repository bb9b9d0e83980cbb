import type { INodeProperties } from 'n8n-workflow';
import { readChoice, readParameter, readSwitch, readWholeNumber } from '../../shared/parameters';
import { shownFor, type StoreOperation } from '../operation';

const MAX_LIMIT = 10_000_000;

const properties: INodeProperties[] = [
	{
		displayName: 'Purge',
		name: 'purge',
		type: 'options',
		default: 'pastRetention',
		options: [
			{ name: 'All Test Claims', value: 'allTests', description: 'Everything that manual runs claimed, whatever its state, so that the same deliveries can be tried again' },
			{ name: 'Past Retention', value: 'pastRetention', description: 'Completed claims and test claims whose retention is over. Unfinished work is never removed.' },
		],
		description: 'Which claims are forgotten. A delivery that comes again after that is new.',
	},
	{
		displayName: 'Limit',
		name: 'limit',
		type: 'number',
		typeOptions: { minValue: 1, maxValue: MAX_LIMIT, numberPrecision: 0 },
		default: 100000,
		description: 'Max number of claims to remove, a thousand at a time; the next run goes on from there',
	},
	{
		displayName: 'Dry Run',
		name: 'dryRun',
		type: 'boolean',
		default: false,
		description: 'Whether to count only what would be removed',
	},
];

export const purge: StoreOperation = {
	option: { name: 'Purge', value: 'purge', action: 'Purge claims', description: 'Forget claims past their retention, or all test claims; the database user needs the right DELETE' },
	forAgents: false,
	properties: shownFor('purge', properties),
	prepare({ context, itemIndex, store }) {
		const what = readChoice('Purge', readParameter(context, 'purge', 'Purge', itemIndex), ['pastRetention', 'allTests']);
		const limit = readWholeNumber('Limit', readParameter(context, 'limit', 'Limit', itemIndex), 1, MAX_LIMIT);
		const dryRun = readSwitch('Dry Run', readParameter(context, 'dryRun', 'Dry Run', itemIndex));
		return async () => {
			const { live, test } = await (await store()).purge({ what, limit }, dryRun);
			return [{ purge: what, dryRun, claims: live + test, live, test, limitReached: live + test >= limit }];
		};
	},
};
