import { changed, request, type Sample } from './sample';

const delivery = request(
	{ 'user-agent': 'intercom-webhooks/1.0', 'x-hub-signature': 'sha1=21ff' },
	{
		type: 'notification_event',
		app_id: 'a1b2c3d4',
		data: { type: 'notification_event_data', item: { type: 'conversation', id: '215468', state: 'open' } },
		links: {},
		id: 'notif_8d1b0bb0-63b7-11f0-9c1a-0b7b2b4e7f10',
		topic: 'conversation.user.created',
		delivery_status: 'pending',
		delivery_attempts: 1,
		delivered_at: 0,
		first_sent_at: 1793610598,
		created_at: 1793610597,
		self: null,
	},
);

export const intercom: Sample = {
	delivery,
	redelivery: changed(delivery, { 'x-hub-signature': 'sha1=90ce' }, { delivery_attempts: 2 }),
	anotherEvent: changed(delivery, {}, { id: 'notif_8d1b0bb0-63b7-11f0-9c1a-0b7b2b4e7f11' }),
	eventType: 'conversation.user.created',
	retentionDays: 2,
};
