import type { IDataObject } from 'n8n-workflow';
import { changed, request, SAMPLES } from '../../providers/samples';
import { anyText, textWith } from '../../support/matchers';
import { claimNode, claimsOf, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, Workbench } from '../../support/workbench';

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const preset = (provider: string, options: IDataObject = {}, more: IDataObject = {}) => claimNode({ provider, source: '', deliveryId: '', options, ...more });
const event = (id: string) => ({ json: request({}, { id, object: 'event', type: 'invoice.paid', data: { object: { id: 'in_1' } } }) });
const days = async () => (await workbench.rows()).map((row) => row.retention_days);

test('a redelivery keeps its ID and is a duplicate, whatever else changed', async () => {
	await workbench.run(guarded(preset('github')), { items: [{ json: SAMPLES.github.delivery }] });
	const edited = changed(SAMPLES.github.delivery, { 'user-agent': 'GitHub-Hookshot/2' }, { action: 'edited' });
	const run = await workbench.run(guarded(preset('github')), { items: [{ json: edited }] });
	expect(claimsOf(run, 'Claim', KNOWN_DUPLICATE)).toHaveLength(1);
});

test('without its header, no substitute is made of what else looks like an ID', async () => {
	const json = request({ 'x-github-event': 'issues' }, { id: 5, action: 'opened' });
	const run = await workbench.run(guarded(preset('github')), { items: [{ json }] });
	expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ responseCode: 400, error: { kind: 'missing_delivery_id', message: textWith('GitHub'), hint: anyText } }]);
	expect(await workbench.rows()).toEqual([]);
});

test('where a delivery names no account, it is the empty one', async () => {
	const run = await workbench.run(guarded(preset('stripe')), { items: [event('evt_1')] });
	expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ account: '' }]);
});

test('an element split from a body is read like the body', async () => {
	const run = await workbench.run(guarded(preset('stripe')), { items: [{ json: { id: 'evt_1' } }, { json: { id: 'evt_2' } }, { json: { id: 'evt_1' } }] });
	expect(run.outputOf('Claim', NEW_CLAIM).map(({ id }) => id)).toEqual(['evt_1', 'evt_2']);
	expect(claimsOf(run, 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ deliveryId: 'evt_1' }]);
});

describe('options over a preset', () => {
	const items = [event('evt_1')];

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
