import { PRESETS } from '../../providers';
import { claimNode, claimsOf, guarded, NEW_CLAIM, Workbench } from '../support/workbench';
import { SAMPLES } from './samples';

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

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterAll(async () => await workbench.close());

test('every preset has its rule here', () => {
	expect(Object.keys(PUBLISHED)).toEqual(PRESETS.map(({ slug }) => slug));
});

test.each(Object.keys(PUBLISHED))('%s', async (slug) => {
	const run = await workbench.run(guarded(claimNode({ provider: slug, source: '', deliveryId: '' })), { items: [{ json: SAMPLES[slug].delivery }] });
	expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ source: slug, ...PUBLISHED[slug] }]);
});
