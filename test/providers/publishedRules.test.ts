import type { IDataObject } from 'n8n-workflow';
import { PRESETS } from '../../providers';
import { claimNode, claimsOf, guarded, NEW_CLAIM, Workbench } from '../support/workbench';
import { changed, request, SAMPLES } from './samples';

/**
 * What each published rule makes of its sample delivery, as fixed text. These are the keys under which people's claims
 * are stored: a rule that gives another text here no longer finds them, and every redelivery is new. If this test
 * fails, put the rule back. A better rule is a new preset with a slug, a sample and a line of its own; nothing that
 * stands here is ever changed or removed.
 */
const PUBLISHED: Record<string, { deliveryId: string; account: string }> = {
	calendly: {
		deliveryId:
			'["invitee.created","https://api.calendly.com/scheduled_events/6f2b6d1e-9c2a-4b7e-8f0a-3d1c5e7a9b11/invitees/1d8f5a3c-70b4-4e0d-9a62-5f1f0c2b7e44","2026-11-02T09:14:06.000000Z"]',
		account: 'https://api.calendly.com/users/0f6c1c1e-2b39-4c0e-a7b1-8f4f6a0d2c55',
	},
	discord: { deliveryId: '["1234560123453231555","APPLICATION_AUTHORIZED","2026-11-02T14:42:53.064834","1111781657612777701"]', account: '1234560123453231555' },
	github: { deliveryId: '72d3162e-cc78-11e3-81ab-4c9367dc0958', account: '79929171' },
	gitlab: { deliveryId: 'b2eecd3a-3ac9-489b-81d6-462ec4881ea5', account: 'https://gitlab.example.com' },
	hubspot: { deliveryId: '["33","1160452","2581103","3816279340","65059681032","1793610598741","lifecyclestage",null,null]', account: '33' },
	intercom: { deliveryId: 'notif_8d1b0bb0-63b7-11f0-9c1a-0b7b2b4e7f10', account: 'a1b2c3d4' },
	jira: { deliveryId: '7f6f3a0c-8f0d-49f5-8f7b-61d0b7a0d6b2', account: 'example.atlassian.net' },
	linear: { deliveryId: '234d1a4e-b617-4388-90fe-adc3633d6b72', account: '4d8ae3b1-2cd4-4f0b-9a1f-0e9b5ad0b0c7' },
	mailgun: { deliveryId: '["CCXMjJ7nQi2N3BPigGOdgQ","1793610598.141723"]', account: 'mail.example.com' },
	paddle: { deliveryId: 'evt_01kcx3b8w0e2q6m4s9t1v7y5za', account: '' },
	paypal: { deliveryId: 'WH-9UG43882HX7271132-6E0871324L7949614', account: '' },
	sendgrid: { deliveryId: 'rWVYmVk90MjZJ9iohOBa3w==', account: '' },
	shopify: { deliveryId: 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043', account: 'example.myshopify.com' },
	slack: { deliveryId: 'Ev0PV52K21', account: 'T061EG9R6' },
	square: { deliveryId: '13b867cf-db3d-4b1c-90b6-2f32a9d78124', account: '6SSW7HV8K2ST5' },
	'standard-webhooks': { deliveryId: 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W', account: '' },
	stripe: { deliveryId: 'evt_1NG8Du2eZvKYlo2CUI79vXWy', account: 'acct_1032D82eZvKYlo2C' },
	twilio: { deliveryId: '5b0d4f6e-2c3a-4c8e-9d57-0a1b2c3d4e5f', account: 'AC00000000000000000000000000000001' },
	typeform: { deliveryId: '01KCX3B8W0E2Q6M4S9T1V7Y5ZA', account: 'lT4Z3j' },
	woocommerce: { deliveryId: '["17","order.updated","727","2026-11-02T09:20:41"]', account: 'https://shop.example.com/' },
	zoom: { deliveryId: '["meeting.participant_left","1793613731044","4444AAAiAAAAAiAiAiiAii==","55555AAAiAAAAAiAiAiiAii8"]', account: 'AAAAAABBBB' },
};

/** The same for what is read from a second place, or may be absent. */
const ALSO_PUBLISHED: Array<[string, string, IDataObject, { deliveryId: string; account: string }]> = [
	['discord', 'an event about a thing', discordEvent({ id: '1234505980407808808', user_id: '771129655544643584' }), { deliveryId: '["12","ENTITLEMENT_CREATE","2026-11-02T18:41:21.109604","1234505980407808808"]', account: '12' }],
	['github', 'no installation target', request({ 'x-github-delivery': 'd-1' }, { repository: { full_name: 'example/shop' } }), { deliveryId: 'd-1', account: 'example/shop' }],
	[
		'hubspot',
		'an association change',
		{ portalId: 33, appId: 1160452, subscriptionId: 7, eventId: 5, occurredAt: 1793610598741, fromObjectId: 51, toObjectId: 52, associationType: 'CONTACT_TO_COMPANY' },
		{ deliveryId: '["33","1160452","7","5","51","1793610598741",null,"52","CONTACT_TO_COMPANY"]', account: '33' },
	],
	['jira', 'an event about a project', request({ 'x-atlassian-webhook-identifier': 'j-1' }, { project: { self: 'https://example.atlassian.net/rest/api/2/project/10000' } }), { deliveryId: 'j-1', account: 'example.atlassian.net' }],
	['jira', 'an event about a release', request({ 'x-atlassian-webhook-identifier': 'j-2' }, { version: { self: 'https://example.atlassian.net/rest/api/2/version/10000' } }), { deliveryId: 'j-2', account: 'example.atlassian.net' }],
	['jira', 'an event about a comment', request({ 'x-atlassian-webhook-identifier': 'j-3' }, { comment: { self: 'https://example.atlassian.net/rest/api/2/issue/1/comment/2' } }), { deliveryId: 'j-3', account: 'example.atlassian.net' }],
	['jira', 'an event about a user', request({ 'x-atlassian-webhook-identifier': 'j-4' }, { user: { self: 'https://example.atlassian.net/rest/api/2/user?accountId=1' } }), { deliveryId: 'j-4', account: 'example.atlassian.net' }],
	['jira', 'an event that names no site', request({ 'x-atlassian-webhook-identifier': 'j-5' }, { issue: { self: 'no address' } }), { deliveryId: 'j-5', account: '' }],
	['mailgun', 'a whole second', { 'event-data': { id: 'm-1', timestamp: 1793610598 } }, { deliveryId: '["m-1","1793610598"]', account: '' }],
	['standard-webhooks', 'only the header of Svix', request({ 'svix-id': 'msg_1' }, { type: 'a' }), { deliveryId: 'msg_1', account: '' }],
	['stripe', 'a context instead of an account', request({}, { id: 'evt_1', context: 'ctx_1' }), { deliveryId: 'evt_1', account: 'ctx_1' }],
	['woocommerce', 'a deletion', shopEvent('product.deleted', { id: 5 }), { deliveryId: '["17","product.deleted","5",null]', account: 'https://shop.example.com/' }],
	['woocommerce', 'a new customer', shopEvent('customer.created', { id: 6, date_modified_gmt: null }), { deliveryId: '["17","customer.created","6",null]', account: 'https://shop.example.com/' }],
	['zoom', 'a user, who has no uuid', request({}, { event: 'user.created', event_ts: 1, payload: { account_id: 'A', object: { id: 'u-1' } } }), { deliveryId: '["user.created","1","u-1",null]', account: 'A' }],
	['zoom', 'a participant without uuid', zoomParticipant({ user_id: '16778240', id: 'p-1' }), { deliveryId: '["meeting.participant_joined","1","m-1","16778240"]', account: 'A' }],
	['zoom', 'a participant who has only an ID', zoomParticipant({ id: 'p-1' }), { deliveryId: '["meeting.participant_joined","1","m-1","p-1"]', account: 'A' }],
];

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterAll(async () => await workbench.close());

test('every preset has its rule here', () => {
	expect(Object.keys(PUBLISHED)).toEqual(PRESETS.map(({ slug }) => slug));
});

test.each(Object.keys(PUBLISHED))('%s', async (slug) => {
	expect(await claimsFor(slug, SAMPLES[slug].delivery)).toMatchObject([{ source: slug, ...PUBLISHED[slug] }]);
});

test.each(ALSO_PUBLISHED)('%s: %s', async (slug, _what, delivery, identity) => {
	expect(await claimsFor(slug, delivery)).toMatchObject([{ source: slug, ...identity }]);
});

async function claimsFor(provider: string, json: IDataObject) {
	const run = await workbench.run(guarded(claimNode({ provider, source: '', deliveryId: '' })), { items: [{ json }] });
	return claimsOf(run, 'Claim', NEW_CLAIM);
}

function discordEvent(data: IDataObject): IDataObject {
	return request({}, { version: 1, application_id: '12', type: 1, event: { type: 'ENTITLEMENT_CREATE', timestamp: '2026-11-02T18:41:21.109604', data } });
}

function shopEvent(topic: string, body: IDataObject): IDataObject {
	return { ...changed(SAMPLES.woocommerce.delivery, { 'x-wc-webhook-topic': topic }), body };
}

function zoomParticipant(participant: IDataObject): IDataObject {
	return request({}, { event: 'meeting.participant_joined', event_ts: 1, payload: { account_id: 'A', object: { uuid: 'm-1', participant } } });
}
