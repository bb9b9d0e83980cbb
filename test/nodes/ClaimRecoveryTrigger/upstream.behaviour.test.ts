import type { IDataObject } from 'n8n-workflow';
import type { TestNode, TestWorkflow } from '../../support/engine';
import { LEASE_OVER } from '../../support/timePassed';
import { claimsOf, completeNode, OPERATIONAL_ERROR, RECORDED, STALE_CLAIM, Workbench } from '../../support/workbench';
import { endAs, leaveBehind, receive, recovering, triggerNode } from './support/recovering';

/** Complete Claim behind the trigger: it finds the claim as it does behind Idempotent Claim. */

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const type = (name: string, parameters: IDataObject = {}): TestNode => ({ type: `n8n-nodes-base.${name}`, parameters });
const references = async () => Object.fromEntries((await workbench.rows()).map((row) => [row.delivery_id, [row.state, row.outcome_reference]])) as Record<string, unknown>;

const done = { a: ['completed', 'for a'], b: ['completed', 'for b'] };

describe('finds the claim', () => {
	test.each<[string, Record<string, TestNode>]>([
		['directly', {}],
		['behind Edit Fields', { Edit: type('set', { fields: '{"more":1}' }) }],
		['behind HTTP Request, whose answer takes the place of the item', { Action: type('httpRequest') }],
		['behind a Code node that returned a new object', { Code: type('code') }],
		['behind HTTP Request, Edit Fields and Code', { Action: type('httpRequest'), Edit: type('set', { fields: '{"claim":"gone"}' }), Code: type('code') }],
	])('%s', async (_what, row) => {
		await receive(workbench, ['a', 'b']);
		const workflow = recovering(triggerNode(), { ...row, Complete: completeNode({ outcomeReference: `={{ "for " + $('Trigger').item.json.id }}` }) });
		const executions = await (await workbench.publish(workflow)).executions();
		expect(executions.map(({ status }) => status)).toEqual(['success', 'success']);
		expect(executions.flatMap((execution) => claimsOf(execution, 'Complete', RECORDED).map(({ version }) => version))).toEqual([2, 2]);
		expect(await references()).toEqual(done);
	});

	test('with another Result Field', async () => {
		await receive(workbench, ['a', 'b']);
		const workflow = recovering(triggerNode({ options: { resultField: 'recovered' } }), { Action: type('httpRequest'), Complete: completeNode({ outcomeReference: `={{ "for " + $('Trigger').item.json.id }}` }) });
		await (await workbench.publish(workflow)).executions();
		expect(await references()).toEqual(done);
	});

	test('behind Reconcile First', async () => {
		await endAs(workbench, ['a', 'b'], { outcome: 'outcomeUncertain' });
		const workflow = recovering(triggerNode());
		workflow.nodes.Look = type('httpRequest');
		workflow.nodes.Complete = completeNode({ outcomeReference: `={{ "for " + $('Trigger').item.json.id }}` });
		workflow.lines.push('Look -> Complete');
		await (await workbench.publish(workflow)).executions();
		expect(await references()).toEqual(done);
	});

	test('behind a sub-workflow, and in it by the claim that is handed on', async () => {
		await receive(workbench, ['a', 'b']);
		const complete = completeNode({ outcomeReference: '={{ "for " + $json.id }}' });
		const inside: TestWorkflow = { nodes: { Called: type('executeWorkflowTrigger'), Complete: complete }, lines: ['Called -> Complete'] };
		const between: TestWorkflow = { nodes: { Called: type('executeWorkflowTrigger'), Action: type('httpRequest') }, lines: ['Called -> Action'] };
		const workflow = (workflowId: string) => recovering(triggerNode({ limit: 1 }), { Call: type('executeWorkflow', { workflowId }), Complete: completeNode({ outcomeReference: `={{ "for " + $('Trigger').item.json.id }}` }) });
		const subWorkflows = { inside, between };
		const [first] = await (await workbench.publish(workflow('inside'), { subWorkflows })).executions();
		const [second] = await (await workbench.publish(workflow('between'), { subWorkflows })).executions();
		expect([first, second].map((run) => [run.status, claimsOf(run, 'Complete', RECORDED).length])).toEqual([['success', 1], ['success', 1]]);
		expect(await references()).toEqual(done);
	});
});

test('a handle that came inside the delivery is not taken for the claim', async () => {
	await leaveBehind(workbench, ['victim']);
	const [victim] = await workbench.rows();
	const forged = { handle: `claim1.${Buffer.from(JSON.stringify([victim.delivery_id, 'shop', '', 'lead', 'live', victim.owner_token, 1])).toString('base64url')}`, idempotencyKey: 'x', status: 'new' };
	await receive(workbench, ['a']);
	const workflow = recovering(triggerNode(), { Edit: type('set', { fields: JSON.stringify({ claim: forged }) }), Complete: completeNode({ outcomeReference: 'mine' }) });
	await (await workbench.publish(workflow)).executions();
	expect(await references()).toEqual({ a: ['completed', 'mine'], victim: ['processing', null] });
});

describe('Extend Lease before the action', () => {
	const extending = (...row: Array<[string, TestNode]>) => recovering(triggerNode({ leaseSeconds: 1 }), { Own: completeNode({ outcome: 'extendLease', leaseSeconds: 600 }), ...Object.fromEntries(row) });

	test('gives a full lease and makes this execution the owner on record, so that an error workflow finds the claim by it', async () => {
		await receive(workbench, ['a']);
		const [execution] = await (await workbench.publish(extending(['Action', { type: 'test.fail' }]))).executions();
		expect([execution.status, claimsOf(execution, 'Own', RECORDED)]).toMatchObject(['error', [{ deliveryId: 'a', version: 2, attempt: 1, state: 'processing' }]]);
		expect(await workbench.row('a')).toMatchObject({ owner_workflow_id: 'recovery', owner_execution_id: execution.executionId });

		const errorWorkflow: TestWorkflow = {
			nodes: { Start: type('webhook'), Complete: completeNode({ claimFrom: 'execution', executionId: '={{ $json.execution.id }}', outcome: 'outcomeUncertain', reason: 'the execution failed' }) },
			lines: ['Start -> Complete'],
		};
		const told = await workbench.run(errorWorkflow, { mode: 'error', items: [{ json: { execution: { id: execution.executionId } } }] });
		expect(claimsOf(told, 'Complete', RECORDED)).toMatchObject([{ deliveryId: 'a', state: 'outcome_uncertain' }]);
		expect(await workbench.row('a')).toMatchObject({ state: 'outcome_uncertain', outcome_reason: 'the execution failed' });
	});

	test('stops an execution that came to its turn too late: somebody else has the claim, and the action does not run', async () => {
		await receive(workbench, ['a'], { options: { whenLeaseExpires: 'takeOver' } });
		const late: Array<() => Promise<void>> = [];
		const workflow = extending(['Action', type('noOp')]);
		workflow.nodes.Stale = type('noOp');
		workflow.lines.push('Own[1] -> Stale');
		await workbench.publish(workflow, {
			emit: (outputs) => late.push(async () => {
				const run = await workbench.run(workflow, { from: 'Trigger', outputs, mode: 'trigger' });
				expect([claimsOf(run, 'Own', STALE_CLAIM), claimsOf(run, 'Own', OPERATIONAL_ERROR), run.ran('Action')]).toMatchObject([[{ reason: 'taken_over' }], [], false]);
			}),
		});
		await workbench.change('a', LEASE_OVER);
		const [inTime] = await (await workbench.publish(recovering())).executions();
		expect(inTime.ran('Action')).toBe(true);
		expect(late).toHaveLength(1);
		await late[0]();
	});
});
