import type { ProviderPreset } from './preset';

/**
 * Calendly sends no delivery ID. `created_at` is when the event happened, not when it is delivered; `payload.uri` is the
 * invitee (or no-show, or form submission) that it is about.
 */
export const calendly: ProviderPreset = {
	slug: 'calendly',
	displayName: 'Calendly',
	deliveryId: { parts: [{ at: [{ body: ['event'] }] }, { at: [{ body: ['payload', 'uri'] }] }, { at: [{ body: ['created_at'] }] }] },
	account: [{ body: ['created_by'] }],
	eventType: [{ body: ['event'] }],
	retentionDays: 3,
	comesAgain: { hours: 24, words: 'for 24 hours' },
	stability: 'notDocumented',
	caveat: 'When somebody reschedules, Calendly sends two deliveries, invitee.canceled and invitee.created: each is a claim of its own.',
	source: {
		readIn: 'documentation',
		url: 'https://developer.calendly.com/api-docs/overview/webhooks/webhook-errors',
		checked: { on: '2026-12-02', what: 'retries for 24 hours, less and less often; a reschedule sends both events' },
	},
};
