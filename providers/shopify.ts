import type { ProviderPreset } from './preset';

export const shopify: ProviderPreset = {
	slug: 'shopify',
	displayName: 'Shopify',
	deliveryId: [{ header: 'x-shopify-webhook-id' }],
	account: [{ header: 'x-shopify-shop-domain' }],
	eventType: [{ header: 'x-shopify-topic' }],
	retentionDays: 7,
	comesAgain: { hours: 4, words: 'up to 8 times in 4 hours' },
	stability: 'documented',
	caveat: "Each subscription to an event delivers under an ID of its own. To act once per event, whatever the number of subscriptions, set Delivery ID Override to the expression $json.headers['x-shopify-event-id'].",
	source: {
		readIn: 'documentation',
		url: 'https://shopify.dev/docs/apps/build/webhooks/verify-deliveries',
		checked: { on: '2026-12-02', what: 'duplicate deliveries have the same X-Shopify-Webhook-Id; several subscriptions share X-Shopify-Event-Id; 8 retries in 4 hours' },
	},
};
