import { changed, request, type Sample } from './sample';

const delivery = request(
	{ 'user-agent': 'Example-Webhooks/1.0', 'webhook-id': 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W', 'webhook-timestamp': '1793610599', 'webhook-signature': 'v1,K5oZ' },
	{ type: 'contact.created', timestamp: '2026-11-02T09:14:05.344522Z', data: { id: '1f81eb52-5198-4599-803e-771906343485' } },
);

export const standardWebhooks: Sample = {
	delivery,
	redelivery: changed(delivery, { 'webhook-timestamp': '1793610604', 'webhook-signature': 'v1,g0hM' }),
	anotherEvent: changed(delivery, { 'webhook-id': 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4X' }),
	eventType: 'contact.created',
	retentionDays: 7,
};
