import { changed, request, type Sample } from './sample';

const delivery = request(
	{ 'user-agent': 'Square Connect v2', 'x-square-hmacsha256-signature': 'T3Bl', 'square-initial-delivery-timestamp': '2026-11-02T09:14:06Z' },
	{
		merchant_id: '6SSW7HV8K2ST5',
		type: 'payment.updated',
		event_id: '13b867cf-db3d-4b1c-90b6-2f32a9d78124',
		created_at: '2026-11-02T09:14:05.318Z',
		data: { type: 'payment', id: 'KkAkhdMsgzn59SM8A89WgKwekxLZY', object: { payment: { status: 'COMPLETED' } } },
	},
);

export const square: Sample = {
	delivery,
	redelivery: changed(delivery, { 'square-retry-number': '1', 'square-retry-reason': 'http_timeout' }),
	anotherEvent: changed(delivery, {}, { event_id: '13b867cf-db3d-4b1c-90b6-2f32a9d78125' }),
	eventType: 'payment.updated',
	retentionDays: 3,
};
