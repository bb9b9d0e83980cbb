import type { ProviderPreset } from './preset';

/** `form_response.token` names the submission; two webhooks of one form share it, and each is a delivery. */
export const typeform: ProviderPreset = {
	slug: 'typeform',
	displayName: 'Typeform',
	deliveryId: [{ body: ['event_id'] }],
	account: [{ body: ['form_response', 'form_id'] }],
	eventType: [{ body: ['event_type'] }],
	retentionDays: 3,
	comesAgain: { hours: 10, words: 'every 2 to 3 minutes for 10 hours, or more' },
	stability: 'notDocumented',
	caveat: 'Typeform switches a webhook off at the first 404 or 410, and n8n answers 404 while the workflow is not active.',
	source: {
		readIn: 'documentation',
		url: 'https://www.typeform.com/developers/webhooks/',
		checked: { on: '2026-12-02', what: 'after a 503 every 2 to 3 minutes for 10 hours; a 404 or 410 disables the webhook' },
	},
};
