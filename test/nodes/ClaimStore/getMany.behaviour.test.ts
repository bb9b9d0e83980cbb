import type { IDataObject } from 'n8n-workflow';
import { LEASE_OVER } from '../../support/timePassed';
import { claimNode, deliveries, guarded, type Workbench } from '../../support/workbench';
import { ask, bring, desk, openDesk } from './support/desk';

let workbench: Workbench;
beforeAll(async () => (workbench = await openDesk()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const found = async (filters: IDataObject, more: IDataObject = {}) => (await ask(workbench, { operation: 'getMany', filters, ...more })).map(({ deliveryId }) => deliveryId);

test('without a filter: every claim, oldest first, each a record with its handle and history, without its payload', async () => {
	for (const id of ['d1', 'd2']) await bring(workbench, id, 'received');
	await workbench.change('d2', "first_seen_at = now() - interval '1 h'");
	const items = await ask(workbench, { operation: 'getMany' });
	expect(items).toMatchObject([
		{ deliveryId: 'd2', state: 'received', payload: null, payloadComplete: true, history: [{ state: 'received' }] },
		{ deliveryId: 'd1', state: 'received', payload: null },
	]);
	const [single] = await ask(workbench, { operation: 'get', getBy: 'handle', handle: items[0].handle, includePayload: false });
	expect(items[0]).toEqual(single);
});

test('Include Payload', async () => {
	await bring(workbench, 'd1', 'received');
	expect(await ask(workbench, { operation: 'getMany', includePayload: true })).toMatchObject([{ payload: { id: 'd1' } }]);
});

test('at most 50, unless Limit says otherwise', async () => {
	await workbench.run(guarded(claimNode({ operation: 'receive' })), { items: deliveries(...Array.from({ length: 60 }, (_, index) => `d${index}`)) });
	expect(await found({})).toHaveLength(50);
	expect(await found({}, { limit: 3 })).toHaveLength(3);
	expect(await found({}, { limit: 1000 })).toHaveLength(60);
});

describe('filters', () => {
	beforeEach(async () => {
		await bring(workbench, 'running', 'processing');
		await bring(workbench, 'over', 'processing');
		await workbench.change('over', `${LEASE_OVER}, first_seen_at = now() - interval '2 h'`);
		await bring(workbench, 'done', 'completed', { source: 'store', action: 'mail', options: { account: 'acme' } });
		await bring(workbench, 'review', 'needs_review', { source: 'store', action: '' });
		await workbench.change('review', "environment = 'test', owner_execution_id = '4711'");
	});

	test.each<[string, IDataObject, string[]]>([
		['Delivery ID', { deliveryId: 'done' }, ['done']],
		['Source', { source: 'store' }, ['done', 'review']],
		['Account', { account: 'acme' }, ['done']],
		['Account, which is empty', { account: '' }, ['over', 'running', 'review']],
		['Action', { action: 'mail' }, ['done']],
		['Action, which is empty', { action: '' }, ['review']],
		['Environment', { environment: 'test' }, ['review']],
		['Execution ID', { executionId: '4711' }, ['review']],
		['States', { states: ['completed', 'needs_review'] }, ['done', 'review']],
		['States as a text', { states: '={{ "completed, needs_review" }}' }, ['done', 'review']],
		['no State', { states: [] }, ['over', 'running', 'done', 'review']],
		['Older Than', { olderThanSeconds: 3600 }, ['over']],
		['Lease Expired', { leaseExpired: true }, ['over']],
		['Lease Expired, switched off', { leaseExpired: false }, ['over', 'running', 'done', 'review']],
		['all of them must match', { source: 'store', environment: 'live', states: ['completed'] }, ['done']],
		['and where they contradict each other, nothing does', { source: 'store', deliveryId: 'over' }, []],
	])('%s', async (_what, filters, expected) => {
		expect(await found(filters)).toEqual(expected);
	});

	test.each(["' OR 'a' = 'a", '%', '"', `\\' --`])('a value such as %s is compared, not run', async (value) => {
		expect(await found({ deliveryId: value })).toEqual([]);
		expect(await found({ source: value })).toEqual([]);
		expect(await found({ executionId: value })).toEqual([]);
	});

	test.each<[string, IDataObject, string]>([
		['a NUL in the delivery ID', { deliveryId: '={{ "d\\u0000" }}' }, 'The delivery ID cannot be used: it contains a control character'],
		['a NUL in the execution ID', { executionId: '={{ "1\\u0000" }}' }, 'Execution ID contains a character that cannot be stored'],
		['an expression that gives nothing', { deliveryId: '={{ $json.nothing }}' }, 'The delivery ID is missing: it is undefined'],
		['an empty Source, which no claim has', { source: '' }, 'The source is missing: it is empty'],
		['an empty Execution ID', { executionId: '={{ $json.nothing }}' }, 'The Execution ID is missing'],
		['typed braces', { source: '{{ $json.source }}' }, 'Source is fixed text that looks like an expression'],
		['a state that there is not', { states: ['done'] }, 'States is not one of received, processing, completed, retryable_failure, outcome_uncertain, needs_review'],
		['an age that is none', { olderThanSeconds: '={{ "soon" }}' }, 'Older Than (Seconds) must be a whole number from 0 to 315360000'],
		['a switch that is neither on nor off', { leaseExpired: '={{ $json.nothing }}' }, 'Lease Expired is not one of true, false'],
	])('%s is refused, rather than find everything', async (_what, filters, message) => {
		const run = await workbench.run(desk({ operation: 'getMany', filters }));
		expect(run.status).toBe('error');
		expect(run.error?.message).toBe(message);
		expect(run.ran('Next')).toBe(false);
	});
});

test.each([0, 10_001, 1.5])('a Limit of %s is refused', async (limit) => {
	await expect(found({}, { limit })).rejects.toThrow('Limit must be a whole number from 1 to 10000');
});

test('each input item is one question; answers are paired with it', async () => {
	for (const id of ['d1', 'd2']) await bring(workbench, id, 'received');
	const run = await workbench.run(desk({ operation: 'getMany', filters: { states: '={{ $json.states }}' } }), { items: [{ json: { states: ['completed'] } }, { json: { states: ['received'] } }] });
	expect(run.itemsOf('Store').map(({ json, pairedItem }) => [json.deliveryId, pairedItem])).toEqual([
		['d1', { item: 1 }],
		['d2', { item: 1 }],
	]);
});
