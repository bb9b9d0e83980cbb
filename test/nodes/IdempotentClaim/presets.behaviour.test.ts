import type { IDataObject, INodeExecutionData } from 'n8n-workflow';
import { claimNode, claimsOf, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, Workbench } from '../../support/workbench';
import { anyText, textWith } from '../../support/matchers';

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

/** An item as n8n's Webhook node makes it. */
function webhookItem(headers: IDataObject, body: IDataObject, rest: IDataObject = {}): INodeExecutionData {
	return {
		json: {
			headers: { host: 'n8n.example.com', 'content-type': 'application/json', ...headers },
			params: {},
			query: {},
			body,
			webhookUrl: 'https://n8n.example.com/webhook/hook',
			executionMode: 'production',
			...rest,
		},
	};
}
const preset = (provider: string, options: IDataObject = {}, more: IDataObject = {}) => claimNode({ provider, source: '', deliveryId: '', options, ...more });
const days = async () => (await workbench.rows()).map((row) => row.retention_days);

describe('GitHub', () => {
	const headers = { 'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958', 'x-github-event': 'issues', 'x-github-hook-installation-target-id': '79929171' };
	const body = { action: 'opened', repository: { full_name: 'octo/hello' } };

	test('finds delivery ID, account and event type by itself, and knows the retention', async () => {
		const run = await workbench.run(guarded(preset('github')), { items: [webhookItem(headers, body)] });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ source: 'github', deliveryId: headers['x-github-delivery'], account: '79929171', eventType: 'issues' }]);
		expect(await days()).toEqual([10]);
	});

	test('a redelivery keeps its ID and is a duplicate, whatever else changed', async () => {
		await workbench.run(guarded(preset('github')), { items: [webhookItem(headers, body)] });
		const run = await workbench.run(guarded(preset('github')), { items: [webhookItem({ ...headers, 'user-agent': 'GitHub-Hookshot/2' }, { ...body, action: 'edited' })] });
		expect(claimsOf(run, 'Claim', KNOWN_DUPLICATE)).toHaveLength(1);
	});

	test('without the header: 400, and no substitute is made', async () => {
		const { 'x-github-delivery': _left, ...others } = headers;
		const run = await workbench.run(guarded(preset('github')), { items: [webhookItem(others, { ...body, id: 5 })] });
		expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ responseCode: 400, error: { kind: 'missing_delivery_id', message: textWith('GitHub'), hint: anyText } }]);
		expect(await workbench.rows()).toEqual([]);
	});
});

describe('Stripe', () => {
	const event = (id: string, rest: IDataObject = {}) => ({ id, object: 'event', type: 'invoice.paid', created: 1700000000, data: { object: { id: 'in_1' } }, ...rest });

	test('finds event ID, account and type in the body, and knows the retention', async () => {
		const run = await workbench.run(guarded(preset('stripe')), { items: [webhookItem({ 'stripe-signature': 't=1,v1=abc' }, event('evt_1', { account: 'acct_9' }))] });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ source: 'stripe', deliveryId: 'evt_1', account: 'acct_9', eventType: 'invoice.paid' }]);
		expect(await days()).toEqual([35]);
	});

	test('one\'s own account is the empty one', async () => {
		const run = await workbench.run(guarded(preset('stripe')), { items: [webhookItem({}, event('evt_1'))] });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ account: '' }]);
	});

	test('a retry has another signature and is a duplicate', async () => {
		await workbench.run(guarded(preset('stripe')), { items: [webhookItem({ 'stripe-signature': 't=1,v1=abc' }, event('evt_1'))] });
		const run = await workbench.run(guarded(preset('stripe')), { items: [webhookItem({ 'stripe-signature': 't=2,v1=def' }, event('evt_1'))] });
		expect(claimsOf(run, 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ reason: 'in_progress' }]);
	});

	test('an element split from a body is read like the body', async () => {
		const run = await workbench.run(guarded(preset('stripe')), { items: [{ json: event('evt_1') }, { json: event('evt_2') }, { json: event('evt_1') }] });
		expect(run.outputOf('Claim', NEW_CLAIM).map(({ id }) => id)).toEqual(['evt_1', 'evt_2']);
		expect(claimsOf(run, 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ deliveryId: 'evt_1' }]);
	});
});

describe('options over a preset', () => {
	const items = [webhookItem({}, { id: 'evt_1', type: 'a', object: 'event', data: { object: { id: 'in_1' } } })];

	test('Delivery ID Override, Account, Event Type and Retention win', async () => {
		const options = { deliveryIdOverride: '={{ $json.body.data.object.id }}', account: 'north', eventType: 'mine', retentionDays: 60 };
		const run = await workbench.run(guarded(preset('stripe', options)), { items });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ source: 'stripe', deliveryId: 'in_1', account: 'north', eventType: 'mine' }]);
		expect(await days()).toEqual([60]);
	});

	test('an override that yields nothing is an error, not a fall back to the preset\'s ID', async () => {
		const run = await workbench.run(guarded(preset('stripe', { deliveryIdOverride: '={{ $json.body.nothing }}' })), { items });
		expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ responseCode: 400, error: { kind: 'missing_delivery_id' } }]);
	});

	test('an override that changes at every execution is refused', async () => {
		const run = await workbench.run(guarded(preset('stripe', { deliveryIdOverride: '={{ $execution.id }}' })), { items });
		expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ error: { kind: 'invalid_setting' } }]);
	});

	test('the default action is the workflow: two workflows act once each', async () => {
		const inWorkflow = async (id: string) => {
			const { action: _default, ...parameters } = preset('stripe').parameters ?? {};
			return await workbench.run({ ...guarded({ ...preset('stripe'), parameters }), id }, { items });
		};
		expect(claimsOf(await inWorkflow('w1'), 'Claim', NEW_CLAIM)).toMatchObject([{ action: 'w1' }]);
		expect(claimsOf(await inWorkflow('w2'), 'Claim', NEW_CLAIM)).toMatchObject([{ action: 'w2' }]);
		expect(claimsOf(await inWorkflow('w1'), 'Claim', KNOWN_DUPLICATE)).toHaveLength(1);
	});
});
