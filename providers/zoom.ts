import type { ProviderPreset } from './preset';

/**
 * Zoom sends no delivery ID. `event_ts` is the event's own time in milliseconds. When a meeting ends, all participants
 * leave it at once, so who it was belongs to the ID; only events about participants say it.
 */
export const zoom: ProviderPreset = {
	slug: 'zoom',
	displayName: 'Zoom',
	deliveryId: {
		parts: [
			{ at: [{ body: ['event'] }] },
			{ at: [{ body: ['event_ts'] }] },
			{ at: [{ body: ['payload', 'object', 'uuid'] }, { body: ['payload', 'object', 'id'] }] },
			{
				at: [
					{ body: ['payload', 'object', 'participant', 'participant_uuid'] },
					{ body: ['payload', 'object', 'participant', 'user_id'] },
					{ body: ['payload', 'object', 'participant', 'id'] },
				],
				mayBeAbsent: true,
			},
		],
	},
	account: [{ body: ['payload', 'account_id'] }],
	eventType: [{ body: ['event'] }],
	retentionDays: 2,
	comesAgain: { hours: 2, words: 'after 5, 20 and 60 minutes' },
	stability: 'notDocumented',
	otherRequests: [
		{
			what: "Zoom's check of the address (endpoint.url_validation)",
			when: { at: { body: ['event'] }, is: ['endpoint.url_validation'] },
			doFirst:
				'Before this node, put an If node that looks whether $json.body.event is endpoint.url_validation, hash $json.body.payload.plainToken with the Crypto node (Hmac, SHA256, HEX, your Secret Token), and answer with Respond to Webhook: JSON with plainToken and encryptedToken. Zoom repeats the check every 72 hours.',
		},
	],
	source: {
		readIn: 'documentation',
		url: 'https://developers.zoom.us/docs/api/webhooks/',
		checked: { on: '2026-12-02', what: 'retries after 5, 20 and 60 minutes; the check of the address, every 72 hours; fields of participants' },
	},
};
