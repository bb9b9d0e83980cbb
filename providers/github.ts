import type { ProviderPreset } from './preset';

/** GitHub does not retry by itself; "Redeliver" within 3 days keeps the ID, so it is a duplicate, on purpose. */
export const github: ProviderPreset = {
	slug: 'github',
	displayName: 'GitHub',
	deliveryId: [{ header: 'x-github-delivery' }],
	account: [{ header: 'x-github-hook-installation-target-id' }, { body: ['repository', 'full_name'] }],
	eventType: [{ header: 'x-github-event' }],
	retentionDays: 10,
	documentation: 'https://docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks',
};
