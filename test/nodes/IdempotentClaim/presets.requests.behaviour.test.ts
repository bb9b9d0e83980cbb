import type { IDataObject, INodeExecutionData } from 'n8n-workflow';
import { changed, request, SAMPLES } from '../../providers/samples';
import { textLike, textWith } from '../../support/matchers';
import { claimNode, claimsOf, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, Workbench, type Claim } from '../../support/workbench';

/** What comes to a sender's address and is no single delivery, and deliveries whose ID cannot be used. */

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const preset = (provider: string, options: IDataObject = {}) => claimNode({ provider, source: '', deliveryId: '', options });

/** What leaves by Operational Error; nothing may be claimed by it. */
async function refused(provider: string, item: INodeExecutionData, options: IDataObject = {}): Promise<Claim[]> {
	const run = await workbench.run(guarded(preset(provider, options)), { items: [item] });
	expect(await workbench.rows()).toEqual([]);
	return claimsOf(run, 'Claim', OPERATIONAL_ERROR);
}
const missing = (message: RegExp, hint: RegExp) => [{ responseCode: 400, deliveryId: null, error: { kind: 'missing_delivery_id', message: textLike(message), hint: textLike(hint) } }];

describe('handshakes and other requests that are no deliveries', () => {
	const slackChallenge = request({}, { token: 'made-up', challenge: '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P', type: 'url_verification' });
	const others: Array<[string, string, IDataObject, RegExp]> = [
		['slack', 'url_verification', slackChallenge, /Before this node.*If node.*url_verification.*Respond to Webhook.*challenge/],
		['zoom', 'endpoint.url_validation', request({}, { event: 'endpoint.url_validation', event_ts: 1793610598741, payload: { plainToken: 'qgg8vlvZRS6UYooatFL8Aw' } }), /Before this node.*Crypto.*plainToken and encryptedToken.*72 hours/],
		['discord', 'PING', request({}, { version: 1, application_id: '1234560123453231555', type: 0 }), /Before this node.*Respond to Webhook.*204/],
		['intercom', 'ping', request({}, { type: 'notification_event', app_id: 'a1b2c3d4', data: { item: { type: 'ping' } }, id: null, topic: 'ping' }), /Before this node.*ping/],
		['woocommerce', 'webhook_id', request({}, { webhook_id: '17' }, 'application/x-www-form-urlencoded'), /Before this node.*Response Code 200/],
		['twilio', 'Event Streams', changed(SAMPLES.twilio.delivery, {}, { specversion: '1.0', id: 'EZ1', type: 'com.twilio.messaging.message.delivered' }), /Custom.*Delivery ID/],
	];

	test.each(others)('%s: %s: 400, with what to do first', async (provider, name, json, doFirst) => {
		expect(await refused(provider, { json })).toMatchObject(missing(new RegExp(`${name}.*not a delivery`), doFirst));
	});

	test('a Delivery ID Override makes no delivery of them', async () => {
		expect(await refused('slack', { json: slackChallenge }, { deliveryIdOverride: '={{ $json.body.token }}' })).toMatchObject(missing(/not a delivery/, /challenge/));
	});
});

describe('an array in the body', () => {
	const batch = [SAMPLES.sendgrid.delivery, SAMPLES.sendgrid.anotherEvent];

	test.each([
		['sendgrid', batch],
		['hubspot', [SAMPLES.hubspot.delivery]],
		['stripe', [{ id: 'evt_1' }]],
	])('%s: 400, split it out first', async (provider, body) => {
		expect(await refused(provider, { json: request({}, body) })).toMatchObject(missing(/array/, /Split Out.*Fields To Split Out: body/));
	});

	test('split out, each element is a claim of its own', async () => {
		const run = await workbench.run(guarded(preset('sendgrid')), { items: [...batch, SAMPLES.sendgrid.redelivery].map((json) => ({ json })) });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject(batch.map(({ sg_event_id: deliveryId }) => ({ deliveryId })));
		expect(claimsOf(run, 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ deliveryId: batch[0].sg_event_id }]);
	});

	test('split out with all other fields, an element stands in the body, and is read from there', async () => {
		const items = batch.map((body) => ({ json: request({}, body) }));
		const run = await workbench.run(guarded(preset('sendgrid')), { items });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject(batch.map(({ sg_event_id: deliveryId }) => ({ deliveryId })));
	});

	test('where a header names the delivery, the array is one delivery', async () => {
		const run = await workbench.run(guarded(preset('standard-webhooks')), { items: [{ json: request({ 'webhook-id': 'msg_1' }, batch) }] });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ deliveryId: 'msg_1' }]);
	});
});

describe('a body that was stored as a file', () => {
	const binary = { data: { data: Buffer.from('{"id":"evt_1"}').toString('base64'), mimeType: 'application/octet-stream' } };

	test.each([
		['the Webhook node gave an empty object', {}],
		['an older one gave nothing', undefined],
	])('%s: 400, with what to set', async (_case, body) => {
		const json = { ...request({}, {}, 'application/octet-stream'), body };
		expect(await refused('stripe', { json, binary })).toMatchObject(missing(/body is empty.*file/, /application\/json.*Binary File.*Extract From File/));
	});

	test('Raw Body keeps the bytes beside the parsed body: read as ever', async () => {
		const run = await workbench.run(guarded(preset('stripe')), { items: [{ json: request({}, { id: 'evt_1' }), binary }] });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ deliveryId: 'evt_1' }]);
	});
});

describe('composite IDs', () => {
	test('the parts stay apart, whatever they hold', async () => {
		const uri = (event: string, path: string) => changed(SAMPLES.calendly.delivery, {}, { event, payload: { uri: path } });
		const items = [uri('a","b', 'c'), uri('a', 'b","c')].map((json) => ({ json }));
		const run = await workbench.run(guarded(preset('calendly')), { items });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toHaveLength(2);
	});

	test('a missing part is named', async () => {
		const { event_ts: _left, ...body } = SAMPLES.zoom.delivery.body as IDataObject;
		expect(await refused('zoom', { json: { ...SAMPLES.zoom.delivery, body } })).toMatchObject(missing(/part of it is missing.*event_ts/, /Connect the Webhook node/));
	});

	test.each([
		['a number that was rounded on its way', { eventId: 2 ** 53 }, /too large to be exact.*eventId/],
		['a time that was rounded on its way', { occurredAt: 1e16 }, /too large to be exact.*occurredAt/],
		['a fraction', { eventId: 1.5 }, /not whole.*eventId/],
		['an object', { subscriptionId: { id: 1 } }, /type object.*subscriptionId/],
		['a switch', { objectId: true }, /type boolean.*objectId/],
		['white space at the end', { propertyName: 'email ' }, /white space.*propertyName/],
	])('%s is no part of an ID', async (_case, part, message) => {
		const error = { kind: 'invalid_delivery_id', message: textLike(message) };
		expect(await refused('hubspot', { json: { ...SAMPLES.hubspot.delivery, ...part } })).toMatchObject([{ responseCode: 400, error }]);
	});

	test('a number and its text are the same part', async () => {
		const asText = { ...SAMPLES.hubspot.delivery, eventId: '3816279340' };
		const run = await workbench.run(guarded(preset('hubspot')), { items: [{ json: SAMPLES.hubspot.delivery }, { json: asText }] });
		expect(claimsOf(run, 'Claim', KNOWN_DUPLICATE)).toHaveLength(1);
	});

	test('both directions of an association change, and one object with several, are deliveries of their own', async () => {
		const { objectId: _object, propertyName: _property, ...event } = SAMPLES.hubspot.delivery;
		const pairs = [
			[51, 52],
			[52, 51],
			[51, 53],
		];
		const items = pairs.map(([fromObjectId, toObjectId]) => ({ json: { ...event, fromObjectId, toObjectId } }));
		const run = await workbench.run(guarded(preset('hubspot')), { items });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toHaveLength(3);
	});

	test('a change without its time has no ID: all later ones would be one delivery', async () => {
		const json = changed(SAMPLES.woocommerce.delivery, {}, { date_modified_gmt: null });
		expect(await refused('woocommerce', { json })).toMatchObject(missing(/date_modified_gmt/, /./));
	});
});

describe('headers', () => {
	test('their names are compared without regard to case', async () => {
		const { 'x-github-delivery': id, ...headers } = SAMPLES.github.delivery.headers as IDataObject;
		const items = [{ json: SAMPLES.github.delivery }, { json: { ...SAMPLES.github.delivery, headers: { ...headers, 'X-GitHub-Delivery': id } } }];
		const run = await workbench.run(guarded(preset('github')), { items });
		expect(claimsOf(run, 'Claim', KNOWN_DUPLICATE)).toHaveLength(1);
	});

	test('Twilio without its token: no substitute is made of the message and its status', async () => {
		const { 'i-twilio-idempotency-token': _left, ...headers } = SAMPLES.twilio.delivery.headers as IDataObject;
		const item = { json: { ...SAMPLES.twilio.delivery, headers } };
		expect(await refused('twilio', item)).toMatchObject([{ responseCode: 400, error: { kind: 'missing_delivery_id', message: textWith('i-twilio-idempotency-token') } }]);
	});
});
