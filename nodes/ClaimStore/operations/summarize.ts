import type { IDataObject, INodeProperties } from 'n8n-workflow';
import type { State } from '../../../store/record';
import type { ClaimCount } from '../../../store/statements/summarizeClaims';
import { readChoice, readParameter } from '../../shared/parameters';
import { ENVIRONMENT_OPTIONS, ENVIRONMENTS } from '../environments';
import { shownFor, type StoreOperation } from '../operation';

const properties: INodeProperties[] = [
	{
		displayName: 'Environment',
		name: 'environment',
		type: 'options',
		default: 'live',
		options: [
			{ name: 'All', value: 'all', description: 'Both' },
			...ENVIRONMENT_OPTIONS,
		],
		description: 'Which claims are counted',
	},
];

export const summarize: StoreOperation = {
	option: { name: 'Summarize', value: 'summarize', action: 'Summarize claims', description: 'Counts by state and source, and what is stuck, in one item' },
	forAgents: true,
	properties: shownFor('summarize', properties),
	prepare({ context, itemIndex, store }) {
		const environment = readChoice('Environment', readParameter(context, 'environment', 'Environment', itemIndex, 'live'), ['all', ...ENVIRONMENTS]);
		return async () => {
			const counts = await (await store()).summarize();
			return [{ environment, ...summaryOf(counts.filter((count) => environment === 'all' || count.environment === environment)) }];
		};
	},
};

/** Totals first, for alerts; the counts that they are made of in `rows`. No personal data in it. */
function summaryOf(counts: ClaimCount[]): IDataObject {
	const unfinished = counts.filter(({ state }) => state !== 'completed');
	const sum = (of: ClaimCount[], part: (count: ClaimCount) => number = ({ claims }) => claims) => of.reduce((total, count) => total + part(count), 0);
	const inState = (state: State) => sum(counts.filter((count) => count.state === state));
	return {
		claims: sum(counts),
		unfinished: sum(unfinished),
		oldestUnfinishedAt: unfinished.map(({ oldest }) => oldest).sort()[0] ?? null,
		leasesExpired: sum(unfinished, ({ leasesExpired }) => leasesExpired),
		unfinishedWithoutPayload: sum(unfinished, ({ withoutPayload }) => withoutPayload),
		received: inState('received'),
		processing: inState('processing'),
		completed: inState('completed'),
		retryableFailure: inState('retryable_failure'),
		outcomeUncertain: inState('outcome_uncertain'),
		needsReview: inState('needs_review'),
		rows: counts.map((count) => ({
			environment: count.environment,
			source: count.source,
			state: count.state,
			claims: count.claims,
			oldestAt: count.oldest,
			leasesExpired: count.leasesExpired,
			withoutPayload: count.withoutPayload,
		})),
	};
}
