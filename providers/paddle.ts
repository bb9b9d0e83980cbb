import type { ProviderPreset } from './preset';

/** Not `notification_id`: a replay has a new one, and each destination its own. */
export const paddle: ProviderPreset = {
	slug: 'paddle',
	displayName: 'Paddle',
	deliveryId: [{ body: ['event_id'] }],
	account: [],
	eventType: [{ body: ['event_type'] }],
	retentionDays: 95,
	comesAgain: { hours: 2160, words: 'up to 60 times in 3 days; when somebody replays it, for 90 days' },
	stability: 'documented',
	caveat: 'A replay keeps the event ID: it is a known duplicate, on purpose.',
	source: {
		readIn: 'documentation',
		url: 'https://developer.paddle.com/webhooks/respond-to-webhooks',
		checked: { on: '2026-12-02', what: 'up to 60 retries in 3 days; a replay has the event_id of the original and a new notification_id, for 90 days' },
	},
};
