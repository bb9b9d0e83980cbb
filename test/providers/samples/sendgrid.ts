import type { Sample } from './sample';

/** An element of the array that SendGrid posts. */
const delivery = {
	email: 'reader@example.com',
	timestamp: 1793610598,
	'smtp-id': '<14c5d75ce93.dfd.64b469@ismtpd-555>',
	event: 'delivered',
	category: ['newsletter'],
	sg_event_id: 'rWVYmVk90MjZJ9iohOBa3w==',
	sg_message_id: '14c5d75ce93.dfd.64b469.filter0001.16648.5515E0B88.0',
	response: '250 OK',
};

export const sendgrid: Sample = {
	delivery,
	// Nothing in an event tells tries apart; the batch it comes in may be another.
	redelivery: { ...delivery },
	anotherEvent: { ...delivery, sg_event_id: 'rWVYmVk90MjZJ9iohOBa4w==' },
	eventType: 'delivered',
	retentionDays: 3,
};
