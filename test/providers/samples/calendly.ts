import { changed, request, type Sample } from './sample';

const invitee = {
	uri: 'https://api.calendly.com/scheduled_events/6f2b6d1e-9c2a-4b7e-8f0a-3d1c5e7a9b11/invitees/1d8f5a3c-70b4-4e0d-9a62-5f1f0c2b7e44',
	email: 'visitor@example.com',
	name: 'A Visitor',
	status: 'active',
	rescheduled: false,
	created_at: '2026-11-02T09:14:05.318204Z',
	updated_at: '2026-11-02T09:14:05.318204Z',
	scheduled_event: { uri: 'https://api.calendly.com/scheduled_events/6f2b6d1e-9c2a-4b7e-8f0a-3d1c5e7a9b11', start_time: '2026-11-10T10:00:00.000000Z' },
};
const delivery = request(
	{ 'user-agent': 'Calendly-Webhook/1.0', 'calendly-webhook-signature': 't=1793610847,v1=5f0c' },
	{
		created_at: '2026-11-02T09:14:06.000000Z',
		created_by: 'https://api.calendly.com/users/0f6c1c1e-2b39-4c0e-a7b1-8f4f6a0d2c55',
		event: 'invitee.created',
		payload: invitee,
	},
);

export const calendly: Sample = {
	delivery,
	redelivery: changed(delivery, { 'calendly-webhook-signature': 't=1793611150,v1=a2b9' }),
	anotherEvent: changed(delivery, {}, { created_at: '2026-11-03T16:40:12.000000Z', event: 'invitee.canceled', payload: { ...invitee, status: 'canceled' } }),
	eventType: 'invitee.created',
	retentionDays: 3,
};
