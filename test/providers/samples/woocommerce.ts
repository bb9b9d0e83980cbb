import { changed, request, type Sample } from './sample';

const delivery = request(
	{
		'user-agent': 'WooCommerce/10.3.1 Hookshot (WordPress/6.9)',
		'x-wc-webhook-source': 'https://shop.example.com/',
		'x-wc-webhook-topic': 'order.updated',
		'x-wc-webhook-resource': 'order',
		'x-wc-webhook-event': 'updated',
		'x-wc-webhook-signature': 'qT4h',
		'x-wc-webhook-id': '17',
		'x-wc-webhook-delivery-id': 'd1c2b3a4f5e697887766554433221100',
	},
	{ id: 727, status: 'processing', currency: 'EUR', total: '29.35', date_created_gmt: '2026-11-02T09:14:05', date_modified_gmt: '2026-11-02T09:20:41' },
);

export const woocommerce: Sample = {
	delivery,
	redelivery: changed(delivery, { 'x-wc-webhook-delivery-id': '00112233445566778899aabbccddeeff' }),
	// Its delivery ID can be the same: it is made of the webhook and the second.
	anotherEvent: changed(delivery, {}, { id: 728 }),
	eventType: 'order.updated',
	retentionDays: 7,
};
