import type { ProviderPreset } from './preset';

/**
 * HubSpot says that `eventId` is not unique, so everything that tells one change from another belongs to the ID. Only a
 * property change has a `propertyName`; an association change has two objects (`fromObjectId`, `toObjectId`) instead of
 * `objectId`, and is sent for both directions at the same moment. `attemptNumber` counts tries and stays out.
 */
export const hubspot: ProviderPreset = {
	slug: 'hubspot',
	displayName: 'HubSpot',
	deliveryId: {
		parts: [
			{ at: [{ body: ['portalId'] }] },
			{ at: [{ body: ['appId'] }] },
			{ at: [{ body: ['subscriptionId'] }] },
			{ at: [{ body: ['eventId'] }] },
			{ at: [{ body: ['objectId'] }, { body: ['fromObjectId'] }] },
			{ at: [{ body: ['occurredAt'] }] },
			{ at: [{ body: ['propertyName'] }], mayBeAbsent: true },
			{ at: [{ body: ['toObjectId'] }], mayBeAbsent: true },
			{ at: [{ body: ['associationType'] }], mayBeAbsent: true },
		],
	},
	account: [{ body: ['portalId'] }],
	eventType: [{ body: ['subscriptionType'] }],
	retentionDays: 3,
	comesAgain: { hours: 24, words: 'up to 10 times in 24 hours' },
	stability: 'documented',
	caveat: 'HubSpot documents its eventId as not unique, so the delivery ID is made of several fields. One that came as a number too large to be exact is refused.',
	postsArrays: true,
	source: {
		readIn: 'copy',
		url: 'https://developers.hubspot.com/docs/api/webhooks',
		checked: { on: '2026-12-02', what: 'association changes between objects of one kind are sent for both directions; eventId is not unique, by the comments of several client libraries' },
	},
};
