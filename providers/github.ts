import type { ProviderPreset } from './preset';

/** GitHub does not retry by itself; "Redeliver" within 3 days keeps the ID, so it is a duplicate, on purpose. */
export const github: ProviderPreset = {
	slug: 'github',
	displayName: 'GitHub',
	deliveryId: [{ header: 'x-github-delivery' }],
	account: [{ header: 'x-github-hook-installation-target-id' }, { body: ['repository', 'full_name'] }],
	eventType: [{ header: 'x-github-event' }],
	retentionDays: 10,
	comesAgain: { hours: 168, words: 'only when somebody asks for it, for 3 days (Enterprise Server: 7)' },
	stability: 'documented',
	caveat: 'A redelivery that somebody asks for keeps its ID: it is a known duplicate, on purpose.',
	source: {
		readIn: 'documentation',
		url: 'https://docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks',
		checked: { on: '2026-12-02', what: 'a redelivery has the X-GitHub-Delivery of the original' },
	},
};
