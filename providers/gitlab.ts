import type { ProviderPreset } from './preset';

/**
 * Not `x-gitlab-webhook-uuid`, which is new at each request, nor `x-gitlab-event-uuid`, which all webhooks share that one
 * event set off, directly or through other webhooks.
 */
export const gitlab: ProviderPreset = {
	slug: 'gitlab',
	displayName: 'GitLab',
	deliveryId: [{ header: 'idempotency-key' }],
	account: [{ header: 'x-gitlab-instance' }],
	eventType: [{ header: 'x-gitlab-event' }],
	retentionDays: 30,
	comesAgain: { hours: null, words: 'on a retry and when somebody resends it; for how long is not documented' },
	stability: 'documented',
	caveat: 'Needs GitLab 17.4 or newer: older versions do not send the header Idempotency-Key.',
	source: {
		readIn: 'sourceCode',
		url: 'https://gitlab.com/gitlab-org/gitlab/-/blob/master/app/services/web_hook_service.rb',
		checked: { on: '2026-12-02', what: 'the key is handed on to retries, X-Gitlab-Webhook-UUID is made anew' },
	},
};
