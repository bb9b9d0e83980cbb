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
	caveat: 'Two events can describe one change. To act once per change, set Delivery ID Override to the ID of the object together with the type: {{ JSON.stringify([$json.body.data.object.id, $json.body.type]) }}.',
	source: { readIn: 'copy', url: 'https://docs.stripe.com/webhooks' },
};
