import { changed, request, type Sample } from './sample';

const delivery = request(
	{
		'user-agent': 'Shopify-Captain-Hook',
		'x-shopify-webhook-id': 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043',
		'x-shopify-event-id': '98880550-7158-44d4-b7cd-2c97c8a091b5',
		'x-shopify-shop-domain': 'example.myshopify.com',
		'x-shopify-topic': 'orders/create',
		'x-shopify-triggered-at': '2026-11-02T09:14:05.318204Z',
		'x-shopify-hmac-sha256': 'XWmr',
		'x-shopify-api-version': '2026-10',
	},
	{ id: 5678901234567, name: '#9999', email: 'buyer@example.com', total_price: '403.00', currency: 'EUR' },
);

export const shopify: Sample = {
	delivery,
	redelivery: changed(delivery, { 'x-forwarded-for': '203.0.113.21' }),
	// Another subscription to the same event.
	anotherEvent: changed(delivery, { 'x-shopify-webhook-id': 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd044' }),
	eventType: 'orders/create',
	retentionDays: 7,
};
