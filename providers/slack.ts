import type { ProviderPreset } from './preset';

/** The headers `x-slack-retry-num` and `x-slack-retry-reason` tell tries apart and stay out. */
export const slack: ProviderPreset = {
	slug: 'slack',
	displayName: 'Slack',
	deliveryId: [{ body: ['event_id'] }],
	account: [{ body: ['team_id'] }],
	eventType: [{ body: ['event', 'type'] }],
	retentionDays: 2,
	comesAgain: { hours: 25, words: 'at once, after 1 minute and after 5; with delayed events also hourly for 24 hours' },
	stability: 'documented',
	otherRequests: [
		{
			what: "Slack's challenge (url_verification), which checks a new address",
			when: { at: { body: ['type'] }, is: ['url_verification'] },
			doFirst: 'Before this node, put an If node that looks whether $json.body.type is url_verification, and answer with Respond to Webhook: Text, with the expression $json.body.challenge.',
		},
	],
	source: { readIn: 'copy', url: 'https://docs.slack.dev/apis/events-api/' },
};
