import { changed, request, type Sample } from './sample';

const delivery = request(
	{ 'user-agent': 'TwilioProxy/1.1', 'i-twilio-idempotency-token': '5b0d4f6e-2c3a-4c8e-9d57-0a1b2c3d4e5f', 'x-twilio-signature': '0Kdm', 'x-home-region': 'us1' },
	{
		AccountSid: 'AC00000000000000000000000000000001',
		ApiVersion: '2010-04-01',
		From: '+15550001000',
		To: '+15551112222',
		MessageSid: 'SM00000000000000000000000000000002',
		MessageStatus: 'delivered',
		SmsSid: 'SM00000000000000000000000000000002',
		SmsStatus: 'delivered',
	},
	'application/x-www-form-urlencoded; charset=UTF-8',
);

export const twilio: Sample = {
	delivery,
	redelivery: changed(delivery, { 'x-forwarded-for': '203.0.113.21' }),
	anotherEvent: changed(delivery, { 'i-twilio-idempotency-token': '5b0d4f6e-2c3a-4c8e-9d57-0a1b2c3d4e60' }, { MessageStatus: 'read' }),
	eventType: 'delivered',
	retentionDays: 2,
};
