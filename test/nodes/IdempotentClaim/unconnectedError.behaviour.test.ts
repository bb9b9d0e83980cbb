import { claimNode, claimsOf, deliveries, guarded, NEW_CLAIM, OPERATIONAL_ERROR, Workbench } from '../../support/workbench';
import { freePort } from '../../support/freePort';
import { anyText } from '../../support/matchers';

/** What leaves by an unconnected output is a green execution and a 200 to the sender: here that would lose the event. */

let workbench: Workbench;
let closedPort: number;
beforeAll(async () => {
	workbench = await Workbench.open();
	closedPort = await freePort();
});
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const unconnected = ['Claim -> Action', 'Claim[1] -> Duplicate'];
const mixed = () => deliveries('d1', undefined, 'd3');
const down = () => ({ store: workbench.credential({ port: closedPort }) });
const retrying = { retryOnFail: true, maxTries: 3, waitBetweenTries: 1 };

describe.each(['webhook', 'trigger', 'retry', 'integrated', 'error'] as const)('mode %s', (mode) => {
	test('the execution fails, nothing reaches New Claim, and what was just claimed is put back', async () => {
		const run = await workbench.run(guarded(claimNode(), unconnected), { items: mixed(), mode });
		expect([run.status, run.ran('Action'), run.ran('Duplicate')]).toEqual(['error', false, false]);
		expect(run.error?.name).toBe('NodeOperationError');
		const rows = await workbench.rows();
		expect(rows).toMatchObject([
			{ delivery_id: 'd1', state: 'retryable_failure' },
			{ delivery_id: 'd3', state: 'retryable_failure' },
		]);
		expect(await workbench.database.query('SELECT 1 FROM idempotent_claims WHERE retry_at > clock_timestamp()')).toEqual([]);
	});
});

test('a redelivery of what was put back is New Claim again', async () => {
	await workbench.run(guarded(claimNode(), unconnected), { items: mixed() });
	const run = await workbench.run(guarded(claimNode(), unconnected), { items: deliveries('d1', 'd3') });
	expect(run.status).toBe('success');
	expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ reason: 'retry', version: 2 }, { reason: 'retry', version: 2 }]);
});

describe('the action was not begun, so putting back uses up no attempt', () => {
	test('of a claim that has only one', async () => {
		const once = claimNode({ options: { maxAttempts: 1 } });
		await workbench.run(guarded(once, unconnected), { items: mixed() });
		const run = await workbench.run(guarded(once, unconnected), { items: deliveries('d1') });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ attempt: 1 }]);
	});

	test('however often Retry On Fail tries in vain', async () => {
		const often = claimNode({}, { retryOnFail: true, maxTries: 5, waitBetweenTries: 1 });
		await workbench.run(guarded(often, unconnected), { items: mixed() });
		const run = await workbench.run(guarded(often, unconnected), { items: deliveries('d1') });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ attempt: 1 }]);
	});
});

test.each([undefined, 'stopWorkflow'] as const)('On Error "%s" with Retry On Fail: the execution still ends in error, not green', async (onError) => {
	const run = await workbench.run(guarded(claimNode({}, { onError, ...retrying }), unconnected), { items: mixed() });
	expect([run.status, run.ran('Action')]).toEqual(['error', false]);
	expect((await workbench.rows()).map((row) => [row.delivery_id, row.state])).toEqual([
		['d1', 'retryable_failure'],
		['d3', 'retryable_failure'],
	]);
});

test('Retry On Fail with the database down throughout: error, not green', async () => {
	const run = await workbench.run(guarded(claimNode({}, retrying), unconnected), { items: deliveries('d1'), credentials: down() });
	expect([run.status, run.ran('Action')]).toEqual(['error', false]);
});

test('Retry On Fail that puts its claims back and finds the trouble gone: New Claim of both, once', async () => {
	let tries = 0;
	const store = () => workbench.credential(tries++ === 0 ? { port: closedPort } : {});
	const run = await workbench.run(guarded(claimNode({}, retrying), unconnected), { items: deliveries('d1', 'd2'), credentials: { store } });
	expect([run.status, tries]).toEqual(['success', 2]);
	expect(run.outputOf('Action').map(({ id }) => id)).toEqual(['d1', 'd2']);
	expect((await workbench.rows()).map((row) => row.state)).toEqual(['processing', 'processing']);
});

test.each([{ executeOnce: true }, { executeOnce: true, ...retrying }])('with %o too', async (settings) => {
	const run = await workbench.run(guarded(claimNode({}, settings), unconnected), { items: deliveries(undefined, 'd2') });
	expect([run.status, run.ran('Action')]).toEqual(['error', false]);
	expect(await workbench.rows()).toEqual([]);
});

test('wired only to a node that is switched off, which leads nowhere: as if not connected', async () => {
	const workflow = guarded();
	workflow.nodes.Alarm = { ...workflow.nodes.Alarm, disabled: true };
	const run = await workbench.run(workflow, { items: mixed() });
	expect([run.status, run.ran('Action')]).toEqual(['error', false]);
});

test.each(['continueRegularOutput', 'continueErrorOutput'] as const)('On Error "%s": the person chose to go on; only claimed items do', async (onError) => {
	const run = await workbench.run(guarded(claimNode({}, { onError }), unconnected), { items: mixed() });
	expect(run.status).toBe('success');
	expect(run.outputOf('Action').map(({ id }) => id)).toEqual(['d1', 'd3']);
	expect((await workbench.rows()).map((row) => row.state)).toEqual(['processing', 'processing']);
});

test('wired, the output takes the item and the execution goes on', async () => {
	const run = await workbench.run(guarded(claimNode(), [...unconnected, 'Claim[2] -> Alarm']), { items: mixed() });
	expect([run.status, run.outputOf('Alarm').length]).toEqual(['success', 1]);
});

test('without an item due there, the unconnected output does no harm', async () => {
	const run = await workbench.run(guarded(claimNode(), unconnected), { items: deliveries('d1', 'd1') });
	expect(run.status).toBe('success');
});

test('duplicates of other executions are not put back', async () => {
	await workbench.run(guarded(), { items: deliveries('d1') });
	const run = await workbench.run(guarded(claimNode(), unconnected), { items: mixed() });
	expect(run.status).toBe('error');
	expect((await workbench.rows()).map((row) => [row.delivery_id, row.state])).toEqual([
		['d1', 'processing'],
		['d3', 'retryable_failure'],
	]);
});

test('the error says what happened and what to do, for the person who reads the execution', async () => {
	const run = await workbench.run(guarded(claimNode(), unconnected), { items: deliveries('d1'), credentials: down() });
	const description = (run.error as unknown as { description?: string }).description;
	expect(run.error?.message).toEqual(anyText);
	expect(description).toContain('Operational Error');
});

test.each(['manual', 'evaluation'] as const)('mode %s', async (mode) => {
	const run = await workbench.run(guarded(claimNode(), unconnected), { items: mixed(), mode });
	if (mode === 'manual') {
		expect(run.status).toBe('success');
		expect(run.hintsOf('Claim').join(' ')).toContain('Operational Error is not connected');
		expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toHaveLength(1);
		expect(run.outputOf('Action').map(({ id }) => id)).toEqual(['d1', 'd3']);
	} else {
		// Only manual runs are watched by a person.
		expect(run.status).toBe('error');
	}
});
