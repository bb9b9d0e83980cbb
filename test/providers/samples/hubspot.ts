import type { Sample } from './sample';

/** An element of the array that HubSpot posts. */
const delivery = {
	eventId: 3816279340,
	subscriptionId: 2581103,
	portalId: 33,
	appId: 1160452,
	occurredAt: 1793610598741,
	subscriptionType: 'contact.propertyChange',
	attemptNumber: 0,
	objectId: 65059681032,
	changeSource: 'CRM_UI',
	sourceId: 'userId:45678',
	propertyName: 'lifecyclestage',
	propertyValue: 'lead',
};

export const hubspot: Sample = {
	delivery,
	redelivery: { ...delivery, attemptNumber: 1 },
	anotherEvent: { ...delivery, propertyName: 'hs_lead_status', propertyValue: 'NEW' },
	eventType: 'contact.propertyChange',
	retentionDays: 3,
};
