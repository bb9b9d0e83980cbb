import type { ProviderPreset } from './preset';

/**
 * The ID is unique within a day, so the event's own time belongs to it: seconds with a fraction, in `event-data`. The
 * one in `signature` is the time of the attempt and stays out.
 */
export const mailgun: ProviderPreset = {
	slug: 'mailgun',
	displayName: 'Mailgun',
	deliveryId: { parts: [{ at: [{ body: ['event-data', 'id'] }] }, { at: [{ body: ['event-data', 'timestamp'], as: 'decimal' }] }] },
	account: [{ body: ['event-data', 'domain', 'name'] }],
	eventType: [{ body: ['event-data', 'event'] }],
	retentionDays: 2,
	comesAgain: { hours: 8, words: 'for 8 hours, 5 minutes to 4 hours apart' },
	stability: 'documented',
	caveat: 'Mailgun does not repeat its delivery notifications: one that is answered with an error does not come again.',
	source: {
		readIn: 'documentation',
		url: 'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-retries',
		checked: { on: '2026-12-02', what: 'the ID is unique within a day; domain.name; retries over 8 hours, none of delivery notifications' },
	},
};
