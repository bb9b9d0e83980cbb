import type { ProviderPreset } from './preset';

/** A sender that sends both headers puts the same ID into each, so that either names the delivery. */
export const standardWebhooks: ProviderPreset = {
	slug: 'standard-webhooks',
	displayName: 'Standard Webhooks (Svix)',
	deliveryId: [{ header: 'webhook-id' }, { header: 'svix-id' }],
	account: [],
	eventType: [{ body: ['type'] }],
	retentionDays: 7,
	comesAgain: { hours: 76, words: 'for about 76 hours by the specification, 28 with Svix; longer when somebody resends it' },
	stability: 'documented',
	caveat: 'For every sender that follows the Standard Webhooks specification or sends through Svix. Where several such senders share one Action, tell them apart with the option Account.',
	source: {
		readIn: 'documentation',
		url: 'https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md',
		checked: { on: '2026-12-02', what: 'the ID is the same however often a webhook is retried; example schedule up to 75:35:05' },
	},
};
