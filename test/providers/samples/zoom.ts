import { changed, request, type Sample } from './sample';

const participant = { user_id: '16778240', participant_uuid: '55555AAAiAAAAAiAiAiiAii8', user_name: 'A Visitor', leave_time: '2026-11-02T10:02:11Z' };
const meeting = { id: '1234567890', uuid: '4444AAAiAAAAAiAiAiiAii==', host_id: 'x1yCzABCDEfg23HiJKl4mN', topic: 'A meeting', type: 2, start_time: '2026-11-02T09:00:00Z', duration: 60 };
const delivery = request(
	{ 'user-agent': 'Zoom Marketplace/1.0a', 'x-zm-request-timestamp': '1793613731', 'x-zm-signature': 'v0=a2114d57', 'x-zm-trackingid': 'v=2.0;clid=us02' },
	{ event: 'meeting.participant_left', event_ts: 1793613731044, payload: { account_id: 'AAAAAABBBB', object: { ...meeting, participant } } },
);

export const zoom: Sample = {
	delivery,
	redelivery: changed(delivery, { 'x-zm-request-timestamp': '1793614031', 'x-zm-signature': 'v0=5fd0c1aa', 'x-zm-trackingid': 'v=2.0;clid=us03' }),
	// The meeting ends: everybody leaves in the same millisecond.
	anotherEvent: changed(delivery, {}, { payload: { account_id: 'AAAAAABBBB', object: { ...meeting, participant: { ...participant, user_id: '16778241', participant_uuid: '66666BBBiBBBBBiBiBiiBii8' } } } }),
	eventType: 'meeting.participant_left',
	retentionDays: 2,
};
