import type { ProviderPreset } from './preset';

/** Stripe retries for 3 days; an event can be sent again by hand for 15 days (Dashboard) or 30 (CLI). */
export const stripe: ProviderPreset = {
	slug: 'stripe',
	displayName: 'Stripe',
	deliveryId: [{ body: ['id'] }],
	account: [{ body: ['account'] }, { body: ['context'] }],
	eventType: [{ body: ['type'] }],
	retentionDays: 35,
	documentation: 'https://docs.stripe.com/webhooks',
};
