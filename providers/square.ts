import type { ProviderPreset } from './preset';

export const square: ProviderPreset = {
	slug: 'square',
	displayName: 'Square',
	deliveryId: [{ body: ['event_id'] }],
	account: [{ body: ['merchant_id'] }],
	eventType: [{ body: ['type'] }],
	retentionDays: 3,
	comesAgain: { hours: 24, words: 'up to 11 times in 24 hours' },
	stability: 'documented',
	source: {
		readIn: 'copy',
		url: 'https://developer.squareup.com/docs/webhooks/step4manage',
		checked: { on: '2026-12-02', what: 'event_id is the value by which a repeated notification is known' },
	},
};
