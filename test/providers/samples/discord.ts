import { changed, request, type Sample } from './sample';

const event = {
	type: 'APPLICATION_AUTHORIZED',
	timestamp: '2026-11-02T14:42:53.064834',
	data: { integration_type: 1, scopes: ['applications.commands'], user: { id: '1111781657612777701', username: 'someone', global_name: null } },
};
const delivery = request(
	{ 'user-agent': 'Discord-Webhook/1.0 (+https://discord.com)', 'x-signature-ed25519': '9f2c', 'x-signature-timestamp': '1793630573' },
	{ version: 1, application_id: '1234560123453231555', type: 1, event },
);

export const discord: Sample = {
	delivery,
	redelivery: changed(delivery, { 'x-signature-ed25519': '07ab', 'x-signature-timestamp': '1793630581' }),
	anotherEvent: changed(delivery, {}, { event: { ...event, data: { ...event.data, user: { id: '1111781657612777702', username: 'another' } } } }),
	eventType: 'APPLICATION_AUTHORIZED',
	retentionDays: 1,
	responseCode: 204,
};
