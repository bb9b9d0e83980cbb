import type { IDataObject } from 'n8n-workflow';
import type { RunOptions } from '../../support/engine';
import { answerOf, claimHandles, settle, settling } from '../../support/settling';
import { claimNode, claimsOf, deliveries, guarded, OPERATIONAL_ERROR, RECORDED, Workbench } from '../../support/workbench';

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

describe('Claim From: Handle', () => {
	test('settles exactly the claim that the handle names, from another workflow', async () => {
		const [, second] = await claimHandles(workbench, ['d1', 'd2']);
		const run = await settle(workbench, [second], { outcomeReference: 'lead-2' });
		expect(answerOf(run)).toMatchObject({ output: RECORDED, deliveryId: 'd2', handle: second });
		expect((await workbench.rows()).map((row) => row.state)).toEqual(['processing', 'completed']);
	});

	test.each([
		['empty', ''],
		['nothing', null],
		['a number', 5],
		['text', 'd1'],
		['a damaged handle', 'claim1.eyJ'],
		['a list in disguise', `claim1.${Buffer.from('["d1"]').toString('base64url')}`],
	])('a handle that is %s is refused', async (_name, handle) => {
		await claimHandles(workbench, ['d1']);
		expect(answerOf(await settle(workbench, [handle], {}))).toMatchObject({ output: OPERATIONAL_ERROR, handle: null, error: { kind: 'invalid_setting' } });
		expect((await workbench.row('d1')).state).toBe('processing');
	});

	test('a handle with the right identity and another token owns nothing', async () => {
		const [handle] = await claimHandles(workbench, ['d1']);
		const parts = JSON.parse(Buffer.from(handle.slice('claim1.'.length), 'base64url').toString()) as unknown[];
		parts[5] = 'guessed';
		const forged = `claim1.${Buffer.from(JSON.stringify(parts)).toString('base64url')}`;
		expect(answerOf(await settle(workbench, [forged], {}))).toMatchObject({ reason: 'taken_over' });
		expect((await workbench.row('d1')).state).toBe('processing');
	});
});

describe('Claim From: Execution', () => {
	const settleExecution = async (executionId: unknown, parameters: IDataObject = {}, options: RunOptions = {}) =>
		await workbench.run(settling({ claimFrom: 'execution', executionId: '={{ $json.execution.id }}', ...parameters }), { mode: 'error', items: [{ json: { execution: { id: executionId } } }], ...options });

	test('every claim that the execution left in processing, one item per claim', async () => {
		await claimHandles(workbench, ['d1', 'd2', 'd3'], {}, '70');
		await claimHandles(workbench, ['d4'], {}, '71');
		await workbench.change('d2', "state = 'completed', lease_expires_at = NULL");
		const run = await settleExecution('70', { reason: 'the execution died' });
		expect(claimsOf(run, 'Complete', RECORDED).map(({ deliveryId, state }) => [deliveryId, state])).toEqual([
			['d1', 'outcome_uncertain'],
			['d3', 'outcome_uncertain'],
		]);
		expect(run.itemsOf('Complete', RECORDED).map(({ pairedItem }) => pairedItem)).toEqual([{ item: 0 }, { item: 0 }]);
		expect(run.outputOf('Complete')[0]).toMatchObject({ execution: { id: '70' }, claim: { outcome: { reason: 'the execution died' } } });
		expect((await workbench.rows()).map((row) => row.state)).toEqual(['outcome_uncertain', 'completed', 'outcome_uncertain', 'processing']);
	});

	test('as needs review; also with a numeric execution ID', async () => {
		await claimHandles(workbench, ['d1'], {}, '70');
		const run = await settleExecution(70, { outcome: 'needsReview' });
		expect(answerOf(run)).toMatchObject({ output: RECORDED, state: 'needs_review' });
	});

	test('none found: no item, and no error', async () => {
		await claimHandles(workbench, ['d1'], {}, '70');
		const run = await settleExecution('99');
		expect([run.status, run.ran('Done'), run.ran('Alarm')]).toEqual(['success', false, false]);
	});

	test('another instance\'s execution of the same number is left alone', async () => {
		await claimHandles(workbench, ['d1'], {}, '70');
		await workbench.change('d1', "owner_instance_id = 'another n8n'");
		await settleExecution('70');
		expect((await workbench.row('d1')).state).toBe('processing');
	});

	test.each(['completed', 'noActionNeeded', 'retryableFailure', 'extendLease'])('%s is refused: the worker may still act', async (outcome) => {
		await claimHandles(workbench, ['d1'], {}, '70');
		const run = await settleExecution('70', { outcome: `={{ "${outcome}" }}` });
		expect(answerOf(run)).toMatchObject({ output: OPERATIONAL_ERROR, error: { kind: 'invalid_setting' } });
		expect((await workbench.row('d1')).state).toBe('processing');
	});

	test.each([null, '', ' ', {}])('an execution ID of %j is refused', async (id) => {
		const run = await settleExecution(id);
		expect(answerOf(run)).toMatchObject({ output: OPERATIONAL_ERROR, error: { kind: 'invalid_setting' } });
	});

	test('the worker that was called dead finishes after all: its outcome is recorded', async () => {
		const [handle] = await claimHandles(workbench, ['d1'], {}, '70');
		await settleExecution('70');
		expect(answerOf(await settle(workbench, [handle], { outcomeReference: 'lead-1' }))).toMatchObject({ output: RECORDED, state: 'completed' });
	});

	test('a real failed execution and its error workflow', async () => {
		const workflow = guarded(claimNode());
		workflow.nodes.Action = { type: 'test.fail' };
		const failed = await workbench.run(workflow, { items: deliveries('d1', 'd2'), executionId: '80' });
		expect(failed.status).toBe('error');
		const run = await settleExecution('80');
		expect(claimsOf(run, 'Complete', RECORDED)).toHaveLength(2);
	});
});
