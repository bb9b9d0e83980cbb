import { changed, request, type Sample } from './sample';

const event = {
	id: 'CCXMjJ7nQi2N3BPigGOdgQ',
	timestamp: 1793610598.141723,
	event: 'opened',
	'log-level': 'info',
	domain: { name: 'mail.example.com' },
	recipient: 'reader@example.com',
	'recipient-domain': 'example.com',
	message: { headers: { 'message-id': '20261102091405.000be97f99f8cea1@mail.example.com' } },
};
const delivery = request(
	{ 'user-agent': 'Go-http-client/2.0' },
	{ signature: { timestamp: '1793610599', token: '6f2c', signature: 'd2a1' }, 'event-data': event },
);

export const mailgun: Sample = {
	delivery,
	redelivery: changed(delivery, {}, { signature: { timestamp: '1793610902', token: '91bd', signature: '7c0e' } }),
	// The ID is unique within a day only.
	anotherEvent: changed(delivery, {}, { 'event-data': { ...event, timestamp: 1793783398.141723 } }),
	eventType: 'opened',
	retentionDays: 2,
};
