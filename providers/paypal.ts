import type { ProviderPreset } from './preset';

/** Not the header `paypal-transmission-id`: it names the transmission, not the event. */
export const paypal: ProviderPreset = {
	slug: 'paypal',
	displayName: 'PayPal',
	deliveryId: [{ body: ['id'] }],
	account: [],
	eventType: [{ body: ['event_type'] }],
	retentionDays: 30,
	comesAgain: { hours: 72, words: 'up to 25 times in 3 days; when somebody resends it, for how long is not documented' },
	stability: 'documented',
	caveat: 'An event that somebody resends keeps its ID: it is a known duplicate, on purpose. How old such an event may be is not documented.',
	source: {
		readIn: 'copy',
		url: 'https://developer.paypal.com/api/rest/webhooks/',
		checked: { on: '2026-12-02', what: 'a resend is asked for by the event\'s ID' },
	},
};
