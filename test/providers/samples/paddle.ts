import { changed, request, type Sample } from './sample';

const delivery = request(
	{ 'user-agent': 'Paddle', 'paddle-signature': 'ts=1793610599;h1=3f7d' },
	{
		event_id: 'evt_01kcx3b8w0e2q6m4s9t1v7y5za',
		event_type: 'transaction.completed',
		occurred_at: '2026-11-02T09:14:05.318204Z',
		notification_id: 'ntf_01kcx3b9c4n8r2t6w0y4a8d2fh',
		data: { id: 'txn_01kcx3ayz0b4d8f2h6j0m4p8rt', status: 'completed', currency_code: 'EUR' },
	},
);

export const paddle: Sample = {
	delivery,
	// A replay is a notification of its own.
	redelivery: changed(delivery, { 'paddle-signature': 'ts=1795610599;h1=88c0' }, { notification_id: 'ntf_01kf3v2m4p6r8t0w2y4a6c8e0g' }),
	anotherEvent: changed(delivery, {}, { event_id: 'evt_01kcx3b8w0e2q6m4s9t1v7y5zb' }),
	eventType: 'transaction.completed',
	retentionDays: 95,
};
