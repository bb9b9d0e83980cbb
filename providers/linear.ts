import type { ProviderPreset } from './preset';

export const linear: ProviderPreset = {
	slug: 'linear',
	displayName: 'Linear',
	deliveryId: [{ header: 'linear-delivery' }],
	account: [{ body: ['organizationId'] }],
	eventType: [{ header: 'linear-event' }],
	retentionDays: 2,
	comesAgain: { hours: 8, words: 'after 1 minute, 1 hour and 6 hours' },
	stability: 'notDocumented',
	source: {
		readIn: 'copy',
		url: 'https://linear.app/developers/webhooks',
		checked: { on: '2026-12-02', what: 'at most 3 retries, the first after 1 minute, the next after 1 hour' },
	},
};
