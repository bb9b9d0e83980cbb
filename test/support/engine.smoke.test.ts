import type { IExecuteFunctions, INodeExecutionData, INodeType } from 'n8n-workflow';
import { Engine, type TestWorkflow } from './engine';
import { testNodeTypes } from './nodeTypes';

const three: INodeExecutionData[] = ['a', 'b', 'c'].map((name) => ({ json: { name } }));

/** A node with our three outputs that misbehaves as told: the engine's side of the rule "nothing escapes". */
const misbehaving: INodeType = {
	description: {
		...testNodeTypes['n8n-nodes-base.noOp'].description,
		outputs: ['main', 'main', 'main'],
		properties: [{ displayName: 'how', name: 'how', type: 'string', default: '' }],
	},
	async execute(this: IExecuteFunctions) {
		const how = this.getNodeParameter('how', 0);
		if (how === 'returnsOnOutput2') return [[], [], this.getInputData()];
		if (how === 'emptiesThenThrows') this.getInputData().splice(0);
		throw new Error('escaped');
	},
};
const engine = new Engine({ ...testNodeTypes, 'test.misbehaving': misbehaving });

describe('what the engine does to a node with three outputs', () => {
	const run = async (how: string, settings: object) =>
		await engine.run(
			{
				nodes: {
					Start: { type: 'n8n-nodes-base.webhook' },
					Guard: { type: 'test.misbehaving', parameters: { how }, ...settings },
					Action: { type: 'n8n-nodes-base.noOp' },
				},
				lines: ['Start -> Guard', 'Guard -> Action'],
			},
			{ items: three },
		);
	const continueModes = [{ onError: 'continueRegularOutput' }, { onError: 'continueErrorOutput' }] as const;

	test.each(continueModes)('throwing runs the action with %o', async (settings) => {
		expect((await run('throws', settings)).ran('Action')).toBe(true);
	});
	test('throwing does not with On Error: Stop', async () => {
		expect((await run('throws', {})).ran('Action')).toBe(false);
	});
	test.each([{}, ...continueModes])('Always Output Data runs the action with %o', async (settings) => {
		expect((await run('returnsOnOutput2', settings)).ran('Action')).toBe(false);
		expect((await run('returnsOnOutput2', { ...settings, alwaysOutputData: true })).ran('Action')).toBe(true);
	});
	test.each(continueModes)('emptying the input holds with %o, but not with Execute Once', async (settings) => {
		expect((await run('emptiesThenThrows', settings)).ran('Action')).toBe(false);
		expect((await run('emptiesThenThrows', { ...settings, executeOnce: true })).ran('Action')).toBe(true);
	});
});

const straight = (middle: string, parameters = {}): TestWorkflow => ({
	nodes: { Start: { type: 'n8n-nodes-base.webhook' }, Middle: { type: middle, parameters }, End: { type: 'n8n-nodes-base.noOp' } },
	lines: ['Start -> Middle', 'Middle -> End'],
});

test('the stand-ins give the pairing that they say', async () => {
	const pairing = async (type: string, parameters = {}) =>
		(await engine.run(straight(type, parameters), { items: three })).itemsOf('Middle').map(({ pairedItem }) => pairedItem);

	expect(await pairing('n8n-nodes-base.httpRequest')).toEqual([{ item: 0 }, { item: 1 }, { item: 2 }]);
	expect(await pairing('n8n-nodes-base.code', { how: 'reversed' })).toEqual([{ item: 0 }, { item: 1 }, { item: 2 }]);
	expect(await pairing('n8n-nodes-base.code', { how: 'oneOfMany' })).toEqual([{ item: 0 }]);
	expect(await pairing('n8n-nodes-base.code', { how: 'dropFirst' })).toEqual([undefined, undefined]);
	expect(await pairing('n8n-nodes-base.aggregate')).toEqual([[{ item: 0 }, { item: 1 }, { item: 2 }]]);
});

test('a loop runs its body once per item, and then goes on with all', async () => {
	const run = await engine.run(
		{
			nodes: {
				Start: { type: 'n8n-nodes-base.webhook' },
				Loop: { type: 'n8n-nodes-base.splitInBatches' },
				Body: { type: 'n8n-nodes-base.noOp' },
				Done: { type: 'n8n-nodes-base.noOp' },
			},
			lines: ['Start -> Loop', 'Loop -> Done', 'Loop[1] -> Body', 'Body -> Loop'],
		},
		{ items: three },
	);
	expect(run.status).toBe('success');
	expect(run.timesRun('Body')).toBe(3);
	expect(run.outputOf('Done').map(({ name }) => name)).toEqual(['a', 'b', 'c']);
});

test('a sub-workflow runs in mode "integrated" under an ID of its own and hands its items back', async () => {
	const run = await engine.run(straight('n8n-nodes-base.executeWorkflow', { workflowId: 'sub' }), {
		items: three,
		executionId: '7',
		subWorkflows: {
			sub: {
				nodes: {
					Called: { type: 'n8n-nodes-base.executeWorkflowTrigger' },
					Work: { type: 'n8n-nodes-base.set', parameters: { fields: '={{ JSON.stringify({ id: $execution.id, mode: $execution.mode }) }}' } },
				},
				lines: ['Called -> Work'],
			},
		},
	});
	expect(run.outputOf('End')[0]).toMatchObject({ name: 'a', id: '7-sub-1' });
});

test('a waiting execution goes on from its stored data, under its own ID', async () => {
	const waiting = await engine.run(straight('n8n-nodes-base.wait'), { items: three, executionId: '8' });
	expect([waiting.status, waiting.ran('End')]).toEqual(['waiting', false]);
	const finished = await engine.resume(straight('n8n-nodes-base.wait'), waiting.data, { executionId: '8' });
	expect([finished.status, finished.outputOf('End').length]).toEqual(['success', 3]);
});

test('an execution can end behind one node, as if its worker had died there', async () => {
	const run = await engine.run(straight('n8n-nodes-base.noOp'), { until: 'Middle' });
	expect([run.ran('Middle'), run.ran('End')]).toEqual([true, false]);
});

test('merging by position pairs with both inputs', async () => {
	const run = await engine.run(
		{
			nodes: {
				Start: { type: 'n8n-nodes-base.webhook' },
				Split: { type: 'n8n-nodes-base.if' },
				Merge: { type: 'n8n-nodes-base.merge' },
			},
			lines: ['Start -> Split', 'Split[0] -> Merge[0]', 'Split[1] -> Merge[1]'],
		},
		{ items: three },
	);
	expect(run.itemsOf('Merge')[0].pairedItem).toEqual([
		{ item: 0, input: 0 },
		{ item: 0, input: 1 },
	]);
});
