import type { ProviderPreset } from './preset';

/**
 * Discord sends no delivery ID. The timestamp is the event's own, to the microsecond; what happens to an application is
 * told by the user who did it, all else by the ID of the thing (entitlement, message).
 */
export const discord: ProviderPreset = {
	slug: 'discord',
	displayName: 'Discord',
	deliveryId: {
		parts: [
			{ at: [{ body: ['application_id'] }] },
			{ at: [{ body: ['event', 'type'] }] },
			{ at: [{ body: ['event', 'timestamp'] }] },
			{ at: [{ body: ['event', 'data', 'id'] }, { body: ['event', 'data', 'user', 'id'] }] },
		],
	},
	account: [{ body: ['application_id'] }],
	eventType: [{ body: ['event', 'type'] }],
	retentionDays: 1,
	comesAgain: { hours: 1, words: 'for at most 10 minutes' },
	stability: 'notDocumented',
	caveat: 'Discord wants 204 within 3 seconds: claim.responseCode says so. It removes an address that does not refuse wrong signatures (Ed25519) with 401: verify them before this node.',
	otherRequests: [
		{
			what: "Discord's PING, which checks a new address",
			when: { at: { body: ['type'] }, is: [0] },
			doFirst: 'Before this node, put an If node that looks whether $json.body.type is 0, and answer with Respond to Webhook: No Data, Response Code 204.',
		},
	],
	successCode: 204,
	source: {
		readIn: 'documentation',
		url: 'https://docs.discord.com/developers/events/webhook-events',
		checked: { on: '2026-12-02', what: 'fields of an event, PING, 204 within 3 seconds, retries for up to 10 minutes' },
	},
};
