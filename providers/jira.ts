import type { ProviderPreset } from './preset';

/** The identifier is unique within a site only; what an event is about holds the site's address. */
export const jira: ProviderPreset = {
	slug: 'jira',
	displayName: 'Jira',
	deliveryId: [{ header: 'x-atlassian-webhook-identifier' }],
	account: [
		{ body: ['issue', 'self'], as: 'host' },
		{ body: ['project', 'self'], as: 'host' },
		{ body: ['version', 'self'], as: 'host' },
		{ body: ['comment', 'self'], as: 'host' },
		{ body: ['user', 'self'], as: 'host' },
	],
	eventType: [{ body: ['webhookEvent'] }],
	retentionDays: 3,
	comesAgain: { hours: 2, words: 'up to 5 times, 5 to 15 minutes apart' },
	stability: 'documented',
	caveat: 'Jira Cloud only: Jira Data Center does not send the header X-Atlassian-Webhook-Identifier.',
	source: {
		readIn: 'thirdParty',
		url: 'https://developer.atlassian.com/cloud/jira/platform/webhooks/',
		checked: { on: '2026-12-02', what: 'the identifier is unique within a site and the same across retries, by the documentation of a client library' },
	},
};
