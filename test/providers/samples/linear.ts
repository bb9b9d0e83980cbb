import { changed, request, type Sample } from './sample';

const delivery = request(
	{ 'user-agent': 'Linear-Webhook', 'linear-delivery': '234d1a4e-b617-4388-90fe-adc3633d6b72', 'linear-event': 'Issue', 'linear-signature': '766e' },
	{
		action: 'create',
		type: 'Issue',
		createdAt: '2026-11-02T09:14:05.318Z',
		data: { id: '2174add1-f7c8-44e3-bbf3-2d60b5ea8bc9', title: 'Something is odd', number: 42 },
		url: 'https://linear.app/example/issue/SHOP-42',
		organizationId: '4d8ae3b1-2cd4-4f0b-9a1f-0e9b5ad0b0c7',
		webhookTimestamp: 1793610845400,
		webhookId: '000042e3-d123-4980-b49f-8e140eef9329',
	},
);

export const linear: Sample = {
	delivery,
	redelivery: changed(delivery, { 'linear-signature': '0d31' }, { webhookTimestamp: 1793610905400 }),
	anotherEvent: changed(delivery, { 'linear-delivery': '234d1a4e-b617-4388-90fe-adc3633d6b73' }),
	eventType: 'Issue',
	retentionDays: 2,
};
