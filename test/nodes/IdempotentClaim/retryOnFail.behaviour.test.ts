import { claimNode, claimsOf, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, Workbench } from '../../support/workbench';
import { startProxy, type Proxy } from '../../support/proxy';
import { anyText } from '../../support/matchers';

/**
 * n8n runs a node with Retry On Fail again when it throws, and also when its first item's JSON has an
 * `error`. The second run meets the first one's row and must recognise it as its own.
 */

let workbench: Workbench;
let proxy: Proxy;
beforeAll(async () => {
	workbench = await Workbench.open();
	proxy = await startProxy(workbench.database);
});
afterEach(async () => await workbench.clear());
afterAll(async () => {
	await proxy.close();
	await workbench.close();
});

const retrying = { retryOnFail: true, maxTries: 3, waitBetweenTries: 1 };
const throughProxy = () => ({ store: workbench.credential({ port: proxy.port }) });

test.each([['text'], [{}], [null], [false], [{ message: 'of the sender' }]])('an incoming field "error" of %j: New Claim once, one row, version 1', async (error) => {
	const run = await workbench.run(guarded(claimNode({}, retrying)), { items: [{ json: { error, id: 'd1' } }, { json: { id: 'd2' } }] });
	expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([
		{ reason: 'first_delivery', version: 1, attempt: 1, deliveryId: 'd1' },
		{ reason: 'first_delivery', version: 1, attempt: 1, deliveryId: 'd2' },
	]);
	expect(run.outputOf('Action')).toMatchObject([{ error }, { id: 'd2' }]);
	expect(run.ran('Duplicate')).toBe(false);
	expect((await workbench.rows()).map((row) => [row.delivery_id, row.version, row.attempt])).toEqual([
		['d1', 1, 1],
		['d2', 1, 1],
	]);
});

test.each(['claim', 'receive', 'deduplicate'])('a retried %s recognises its own row', async (operation) => {
	const run = await workbench.run(guarded(claimNode({ operation }, retrying)), { items: [{ json: { error: 'of the sender', id: 'd1' } }] });
	expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ reason: 'first_delivery', version: 1 }]);
	expect(run.ran('Duplicate')).toBe(false);
});

test('with a foreign claim in progress a retry does not turn a duplicate into a new claim', async () => {
	await workbench.run(guarded(), { items: deliveries('d1') });
	const run = await workbench.run(guarded(claimNode({}, retrying)), { items: [{ json: { error: 'of the sender', id: 'd1' } }] });
	expect([run.ran('Action'), claimsOf(run, 'Claim', KNOWN_DUPLICATE).length]).toEqual([false, 1]);
});

test('a lost answer ends as New Claim once, through the store\'s own retry', async () => {
	const lost = proxy.loseAnswerTo('INSERT INTO');
	const run = await workbench.run(guarded(), { items: deliveries('d1'), credentials: throughProxy() });
	await lost.happened;
	expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ reason: 'first_delivery', version: 1, attempt: 1 }]);
	expect(await workbench.rows()).toHaveLength(1);
});

test('a batch whose answer is lost: each item is New Claim once', async () => {
	proxy.loseAnswerTo('INSERT INTO');
	const run = await workbench.run(guarded(), { items: deliveries('d1', 'd2', 'd1', 'd3'), credentials: throughProxy() });
	expect(claimsOf(run, 'Claim', NEW_CLAIM).map(({ deliveryId }) => deliveryId)).toEqual(['d1', 'd2', 'd3']);
	expect(claimsOf(run, 'Claim', KNOWN_DUPLICATE).map(({ deliveryId }) => deliveryId)).toEqual(['d1']);
});

describe('when every answer is lost', () => {
	beforeEach(() => {
		for (let times = 0; times < 20; times++) proxy.loseAnswerTo('INSERT INTO');
	});
	afterEach(() => proxy.forgetOrders());

	test('the item leaves as outcome_unknown, with the handle of what may be its claim', async () => {
		const run = await workbench.run(guarded(), { items: deliveries('d1'), credentials: throughProxy() });
		const [claim] = claimsOf(run, 'Claim', OPERATIONAL_ERROR);
		expect(claim).toMatchObject({ handle: anyText, responseCode: 503, error: { kind: 'outcome_unknown', retryable: true } });
		expect(run.ran('Action')).toBe(false);
		expect(await workbench.row('d1')).toMatchObject({ state: 'processing', version: 1 });
	});

	test('what may have been claimed is put back, and n8n\'s Retry On Fail has it as new', async () => {
		let tries = 0;
		const store = () => workbench.credential(tries++ === 0 ? { port: proxy.port } : {});
		// Operational Error is not connected: the first try throws.
		const run = await workbench.run(guarded(claimNode({}, retrying), ['Claim -> Action']), { items: deliveries('d1', 'd2'), credentials: { store } });
		expect(tries).toBe(2);
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([
			{ reason: 'retry', version: 2, attempt: 1, deliveryId: 'd1' },
			{ reason: 'retry', version: 2, attempt: 1, deliveryId: 'd2' },
		]);
		expect(run.status).toBe('success');
	});
});

test('a user\'s Retry is another execution: the claim of the failed one is a duplicate', async () => {
	const workflow = guarded();
	workflow.nodes.Action = { type: 'test.fail' };
	const failed = await workbench.run(workflow, { items: deliveries('d1'), executionId: '1' });
	expect(failed.status).toBe('error');

	// n8n begins a Retry at the node that failed; a stalled job begins at the start, from data without our nonce.
	const again = await workbench.run(workflow, { items: deliveries('d1'), executionId: '1' });
	expect([again.ran('Action'), claimsOf(again, 'Claim', KNOWN_DUPLICATE).length]).toEqual([false, 1]);
	expect(await workbench.row('d1')).toMatchObject({ version: 1, attempt: 1 });
});

test('a Retry that begins at the guard itself, from stored data, is another owner', async () => {
	const first = await workbench.run(guarded(), { items: deliveries('d1'), executionId: '1', until: 'Claim' });
	const retry = await workbench.resume(guarded(), first, { redo: 'Claim', executionId: '2', mode: 'retry' });
	expect([retry.ran('Action'), claimsOf(retry, 'Claim', KNOWN_DUPLICATE).length]).toEqual([false, 1]);
});
