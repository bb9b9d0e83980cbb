import type { ProviderPreset } from './preset';

/** Stripe retries for 3 days; an event can be sent again by hand for 15 days (Dashboard) or 30 (CLI). */
export const stripe: ProviderPreset = {
	slug: 'stripe',
	displayName: 'Stripe',
	deliveryId: [{ body: ['id'] }],
	account: [{ body: ['account'] }, { body: ['context'] }],
	eventType: [{ body: ['type'] }],
	retentionDays: 35,
	comesAgain: { hours: 720, words: 'for 3 days; when somebody resends it, for 15 days (Dashboard) or 30 (CLI)' },
	stability: 'documented',
	caveat: 'Two events can describe one change. For a type of event that happens to an object only once, such as invoice.paid, the Delivery ID Override {{ $json.body.data.object.id }}/{{ $json.body.type }} acts once for both.',
	source: { readIn: 'copy', url: 'https://docs.stripe.com/webhooks' },
};
