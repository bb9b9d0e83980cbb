import { changed, request, type Sample } from './sample';

const delivery = request(
	{
		'user-agent': 'GitLab/17.11.1-ee',
		'idempotency-key': 'b2eecd3a-3ac9-489b-81d6-462ec4881ea5',
		'x-gitlab-event': 'Issue Hook',
		'x-gitlab-webhook-uuid': '9b62d7ef-fddd-4cac-8b89-65c29acdf561',
		'x-gitlab-event-uuid': '1671f880-67c6-45cb-9dfa-f4707face4ba',
		'x-gitlab-instance': 'https://gitlab.example.com',
	},
	{
		object_kind: 'issue',
		event_type: 'issue',
		project: { id: 482, path_with_namespace: 'example/shop' },
		object_attributes: { id: 301, iid: 23, action: 'open', title: 'Something is odd' },
	},
);

export const gitlab: Sample = {
	delivery,
	redelivery: changed(delivery, { 'x-gitlab-webhook-uuid': '4c0f8a9e-6d11-4d2b-8a57-1e6f0f3c9d20' }),
	anotherEvent: changed(delivery, { 'idempotency-key': '0f1f6c0e-55b8-4f3e-9a54-c6e6c8e0a1d7', 'x-gitlab-webhook-uuid': 'd3c6b7a1-0b52-4e7a-b1d9-1c2f8c3a5e60' }),
	eventType: 'Issue Hook',
	retentionDays: 30,
};
