import { changed, request, type Sample } from './sample';

const delivery = request(
	{ 'user-agent': 'Slackbot 1.0 (+https://api.slack.com/robots)', 'x-slack-request-timestamp': '1793610599', 'x-slack-signature': 'v0=a2114d57' },
	{
		token: 'made-up',
		team_id: 'T061EG9R6',
		api_app_id: 'A0PNCHHK2',
		event: { type: 'app_mention', user: 'U061F7AUR', text: 'is it everything a river should be?', ts: '1793610598.000100', channel: 'C0LAN2Q65' },
		type: 'event_callback',
		event_id: 'Ev0PV52K21',
		event_time: 1793610598,
		authorizations: [{ enterprise_id: null, team_id: 'T061EG9R6', user_id: 'U0LAN0Z89', is_bot: true }],
	},
);

export const slack: Sample = {
	delivery,
	redelivery: changed(delivery, { 'x-slack-request-timestamp': '1793610660', 'x-slack-signature': 'v0=5fd0c1aa', 'x-slack-retry-num': '1', 'x-slack-retry-reason': 'http_timeout' }),
	anotherEvent: changed(delivery, {}, { event_id: 'Ev0PV52K22' }),
	eventType: 'app_mention',
	retentionDays: 2,
};
