import { changed, request, type Sample } from './sample';

const delivery = request(
	{
		'user-agent': 'PayPal/AUHD-214.0-58796618',
		'paypal-transmission-id': 'd938e770-8046-11e6-8103-6b62a8a99ac4',
		'paypal-transmission-time': '2026-11-02T09:14:06Z',
		'paypal-transmission-sig': 'eDOn',
		'paypal-auth-algo': 'SHA256withRSA',
	},
	{
		id: 'WH-9UG43882HX7271132-6E0871324L7949614',
		event_version: '1.0',
		create_time: '2026-11-02T09:14:05.318Z',
		resource_type: 'capture',
		event_type: 'PAYMENT.CAPTURE.COMPLETED',
		summary: 'Payment completed for EUR 21.00',
		resource: { id: '80F85758S3080410K', status: 'COMPLETED', amount: { value: '21.00', currency_code: 'EUR' } },
	},
);

export const paypal: Sample = {
	delivery,
	redelivery: changed(delivery, { 'paypal-transmission-id': '0b1c7f20-8047-11e6-8103-6b62a8a99ac4', 'paypal-transmission-time': '2026-11-02T09:19:06Z', 'paypal-transmission-sig': 'Yz0q' }),
	anotherEvent: changed(delivery, {}, { id: 'WH-9UG43882HX7271132-6E0871324L7949615' }),
	eventType: 'PAYMENT.CAPTURE.COMPLETED',
	retentionDays: 30,
};
