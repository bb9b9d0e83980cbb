import { changed, request, type Sample } from './sample';

const delivery = request(
	{ 'user-agent': 'Atlassian Webhook HTTP Client', 'x-atlassian-webhook-identifier': '7f6f3a0c-8f0d-49f5-8f7b-61d0b7a0d6b2', 'x-atlassian-webhook-flow': 'Primary' },
	{
		timestamp: 1793610598741,
		webhookEvent: 'jira:issue_updated',
		issue_event_type_name: 'issue_generic',
		user: { self: 'https://example.atlassian.net/rest/api/2/user?accountId=5b10a2844c20165700ede21g' },
		issue: { id: '10002', self: 'https://example.atlassian.net/rest/api/2/10002', key: 'SHOP-7', fields: { summary: 'Something is odd' } },
	},
);

export const jira: Sample = {
	delivery,
	redelivery: changed(delivery, { 'x-atlassian-webhook-retry': '1' }),
	anotherEvent: changed(delivery, { 'x-atlassian-webhook-identifier': '7f6f3a0c-8f0d-49f5-8f7b-61d0b7a0d6b3' }),
	eventType: 'jira:issue_updated',
	retentionDays: 3,
};
