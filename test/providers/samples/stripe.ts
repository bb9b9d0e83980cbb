import { changed, request, type Sample } from './sample';

const delivery = request(
	{ 'user-agent': 'Stripe/1.0 (+https://stripe.com/docs/webhooks)', 'stripe-signature': 't=1793610599,v1=5257' },
	{
		id: 'evt_1NG8Du2eZvKYlo2CUI79vXWy',
		object: 'event',
		api_version: '2026-06-30',
		account: 'acct_1032D82eZvKYlo2C',
		created: 1793610598,
		type: 'invoice.paid',
		pending_webhooks: 1,
		data: { object: { id: 'in_1MtHbELkdIwHu7ixl4OzzPMv', object: 'invoice', status: 'paid' } },
	},
);

export const stripe: Sample = {
	delivery,
	redelivery: changed(delivery, { 'stripe-signature': 't=1793614199,v1=0c11' }, { pending_webhooks: 2 }),
	anotherEvent: changed(delivery, {}, { id: 'evt_1NG8Du2eZvKYlo2CUI79vXWz' }),
	eventType: 'invoice.paid',
	retentionDays: 35,
};
