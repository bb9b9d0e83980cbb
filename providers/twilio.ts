import type { ProviderPreset } from './preset';

/**
 * Messaging and voice webhooks, which are forms. Only the token names a delivery. `MessageSid` with `MessageStatus` is no
 * second choice: a delivery that came once with the token and once without (a proxy that drops headers it does not
 * know, a change at the sender) would have two identities, and its action would run twice.
 */
export const twilio: ProviderPreset = {
	slug: 'twilio',
	displayName: 'Twilio',
	deliveryId: [{ header: 'i-twilio-idempotency-token' }],
	account: [{ body: ['AccountSid'] }],
	eventType: [{ body: ['MessageStatus'] }, { body: ['CallStatus'] }],
	retentionDays: 2,
	comesAgain: { hours: 1, words: 'up to 5 times within 15 seconds' },
	stability: 'notDocumented',
	otherRequests: [
		{
			what: 'an event of Twilio Event Streams',
			when: { at: { body: ['specversion'] } },
			doFirst: "Choose the Provider Custom with a Source of its own, and the event's own field id as Delivery ID. Twilio repeats these events for up to 4 hours.",
		},
	],
	source: {
		readIn: 'documentation',
		url: 'https://www.twilio.com/docs/usage/webhooks/webhooks-connection-overrides',
		checked: { on: '2026-12-02', what: 'up to 5 retries within 15 seconds; Event Streams for up to 4 hours; nothing about the token' },
	},
};
