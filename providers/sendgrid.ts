import type { ProviderPreset } from './preset';

/** SendGrid retries for 24 hours, counted anew at each try; somebody reported repeats within 29 hours. */
export const sendgrid: ProviderPreset = {
	slug: 'sendgrid',
	displayName: 'SendGrid',
	deliveryId: [{ body: ['sg_event_id'] }],
	account: [],
	eventType: [{ body: ['event'] }],
	retentionDays: 3,
	comesAgain: { hours: 29, words: 'for 24 hours, sometimes a few more' },
	stability: 'documented',
	postsArrays: true,
	source: {
		readIn: 'copy',
		url: 'https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event',
		checked: { on: '2026-12-02', what: 'sg_event_id is there for deduplication and at most 100 characters long' },
	},
};
