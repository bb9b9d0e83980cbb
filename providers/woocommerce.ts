import type { ProviderPreset } from './preset';

/**
 * Not `x-wc-webhook-delivery-id`: it is a hash over the webhook and the second, so that two deliveries can share it. A
 * deletion is sent with nothing but the resource's ID, and a customer who has just been made may have no time of change
 * yet; both happen to a resource once. Any other delivery without that time has no ID: all later changes of the
 * resource would be one delivery.
 */
export const woocommerce: ProviderPreset = {
	slug: 'woocommerce',
	displayName: 'WooCommerce',
	deliveryId: {
		parts: [
			{ at: [{ header: 'x-wc-webhook-id' }] },
			{ at: [{ header: 'x-wc-webhook-topic' }] },
			{ at: [{ body: ['id'] }] },
			{
				at: [{ body: ['date_modified_gmt'] }],
				mayBeAbsent: {
					at: { header: 'x-wc-webhook-topic' },
					is: ['coupon.created', 'coupon.deleted', 'customer.created', 'customer.deleted', 'order.created', 'order.deleted', 'product.created', 'product.deleted'],
				},
			},
		],
	},
	account: [{ header: 'x-wc-webhook-source' }],
	eventType: [{ header: 'x-wc-webhook-topic' }],
	retentionDays: 7,
	comesAgain: { hours: 0, words: 'never by itself; after more than 5 failures in a row WooCommerce disables the webhook' },
	stability: 'notDocumented',
	caveat: 'WooCommerce has no usable delivery ID, so it is made of webhook, topic, resource and the second of the change: two changes of a resource within one second are one delivery. So are two deletions, where a resource is restored in between.',
	otherRequests: [
		{
			what: "WooCommerce's test of a new address (webhook_id)",
			when: { at: { body: ['webhook_id'] } },
			doFirst: 'Before this node, put an If node that looks whether $json.body.webhook_id exists, and answer with Respond to Webhook: No Data, Response Code 200.',
		},
	],
	source: {
		readIn: 'sourceCode',
		url: 'https://github.com/woocommerce/woocommerce/blob/trunk/plugins/woocommerce/includes/class-wc-webhook.php',
		checked: { on: '2026-12-02', what: 'headers, payloads, the delivery ID, the test of a new address, failures' },
	},
};
