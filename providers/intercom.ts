import type { ProviderPreset } from './preset';

export const intercom: ProviderPreset = {
	slug: 'intercom',
	displayName: 'Intercom',
	deliveryId: [{ body: ['id'] }],
	account: [{ body: ['app_id'] }],
	eventType: [{ body: ['topic'] }],
	retentionDays: 2,
	comesAgain: { hours: 2, words: 'once after 1 minute; after a 429 for up to 2 hours' },
	stability: 'notDocumented',
	otherRequests: [
		{
			what: "Intercom's test of the address (topic ping), which has no ID",
			when: { at: { body: ['topic'] }, is: ['ping'] },
			doFirst: 'Before this node, put an If node that looks whether $json.body.topic is ping, and answer with Respond to Webhook: No Data, Response Code 200.',
		},
	],
	source: {
		readIn: 'copy',
		url: 'https://developers.intercom.com/docs/webhooks/webhook-notifications',
		checked: { on: '2026-12-02', what: "a ping has no ID, by several libraries' recorded examples" },
	},
};
