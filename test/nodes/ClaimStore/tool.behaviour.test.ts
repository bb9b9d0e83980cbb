import { NodeHelpers, type INode, type INodeProperties, type INodePropertyOptions } from 'n8n-workflow';
import { ClaimStore } from '../../../nodes/ClaimStore/ClaimStore.node';
import type { Workbench } from '../../support/workbench';
import { askAsAgent, bring, CLAIM_STORE, CLAIM_STORE_TOOL, look, openDesk } from './support/desk';

/** In the hands of an AI agent: it may look, and decides nothing. */

let workbench: Workbench;
beforeAll(async () => (workbench = await openDesk()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

test('finds claims by what the agent says, without their payload', async () => {
	for (const id of ['d1', 'd2']) await bring(workbench, id, 'needs_review');
	await workbench.change('d2', "source = 'store'");
	const filters = { source: "={{ $fromAI('source', 'Who sent the delivery') }}", states: ['needs_review'] };
	const [answer] = (await askAsAgent(workbench, { operation: 'getMany', filters }, { source: 'store' })).outputOf('Agent');
	expect(answer).toMatchObject({ asks: ['source'], description: expect.stringContaining('which webhook deliveries were worked on') as string });
	expect(answer.answer).toMatchObject([{ deliveryId: 'd2', state: 'needs_review', payload: null, history: [{}, { by: 'Complete' }] }]);
	// An agent must answer every question; an empty text means any.
	expect((await askAsAgent(workbench, { operation: 'getMany', filters }, { source: '' })).outputOf('Agent')[0].answer).toHaveLength(2);
});

test.each([
	[undefined, null],
	[true, { id: 'd1' }],
])('gets one claim; with Include Payload %s its payload is %j', async (includePayload, payload) => {
	await bring(workbench, 'd1', 'received');
	const parameters = { operation: 'get', source: 'shop', deliveryId: "={{ $fromAI('id') }}", action: 'lead', ...(includePayload !== undefined && { includePayload }) };
	const [{ answer }] = (await askAsAgent(workbench, parameters, { id: 'd1' })).outputOf('Agent');
	expect(answer).toMatchObject([{ deliveryId: 'd1', payload }]);
});

test('counts and checks', async () => {
	await bring(workbench, 'd1', 'received');
	expect((await askAsAgent(workbench, { operation: 'summarize' })).outputOf('Agent')[0].answer).toMatchObject([{ claims: 1, received: 1 }]);
	expect((await askAsAgent(workbench, { operation: 'check' })).outputOf('Agent')[0].answer).toMatchObject([{ ok: true, problems: [] }]);
});

describe('neither decides nor removes, also where the workflow was written by hand', () => {
	test('resolve', async () => {
		await bring(workbench, 'd1', 'needs_review');
		const before = await workbench.row('d1');
		const { handle } = await look(workbench, 'd1');
		const run = await askAsAgent(workbench, { operation: 'resolve', handle: "={{ $fromAI('handle') }}", decision: 'release', decidedBy: 'agent', reason: 'because' }, { handle: handle as string });
		expect(run.outputOf('Agent')[0]).toMatchObject({ complaint: expect.stringContaining('The operation Resolve is not for AI agents: a person must decide') as string });
		expect(await workbench.row('d1')).toEqual(before);
	});

	test('purge, and its dry run', async () => {
		await bring(workbench, 'd1', 'completed');
		await workbench.change('d1', "environment = 'test'");
		for (const dryRun of [true, false]) {
			const [{ complaint }] = (await askAsAgent(workbench, { operation: 'purge', purge: 'allTests', dryRun })).outputOf('Agent');
			expect(complaint).toContain('The operation Purge is not for AI agents');
		}
		expect(await workbench.rows()).toHaveLength(1);
	});

	test('nor where n8n runs the tool like any other node, as its newer agents do', async () => {
		await bring(workbench, 'd1', 'needs_review');
		const { handle } = await look(workbench, 'd1');
		const before = await workbench.row('d1');
		const run = await workbench.run({
			nodes: {
				Start: { type: 'n8n-nodes-base.webhook' },
				Store: { type: CLAIM_STORE_TOOL, credential: 'store', parameters: { operation: 'resolve', handle: handle as string, decision: 'release', decidedBy: 'agent', reason: 'because' } },
			},
			lines: ['Start -> Store'],
		});
		expect(run.status).toBe('error');
		expect(run.error?.message).toContain('not for AI agents');
		expect(await workbench.row('d1')).toEqual(before);
	});
});

describe('what the editor offers', () => {
	const { description } = new ClaimStore();
	const offered = (type: string) => {
		const named = { ...description, name: type === CLAIM_STORE_TOOL ? 'claimStoreTool' : 'claimStore' };
		const node = { id: '1', name: 'Store', type, typeVersion: 1, position: [0, 0], parameters: {} } as INode;
		const shown = named.properties.filter((property) => NodeHelpers.displayParameter({ operation: 'getMany' }, property, node, named));
		const operations = shown.filter(({ name }) => name === 'operation');
		expect(operations).toHaveLength(1);
		return (operations[0].options as INodePropertyOptions[]).map(({ value }) => value);
	};

	test('a person: all operations', () => {
		expect(offered(CLAIM_STORE)).toEqual(['check', 'get', 'getMany', 'purge', 'resolve', 'summarize']);
	});

	test('an agent: those that only look', () => {
		expect(offered(CLAIM_STORE_TOOL)).toEqual(['check', 'get', 'getMany', 'summarize']);
	});

	test('every parameter says what it is for', () => {
		const texts = (properties: INodeProperties[]): string[] => properties.flatMap((property) => [property.description ?? (property.name === 'operation' ? 'operations describe themselves' : ''), ...(property.type === 'collection' ? texts(property.options as INodeProperties[]) : [])]);
		expect(texts(description.properties)).not.toContain('');
	});
});
