import { NodeConnectionTypes, type IDataObject, type INodeExecutionData, type INodeType } from 'n8n-workflow';
import { ClaimStore } from '../../../../nodes/ClaimStore/ClaimStore.node';
import type { FinishedRun, RunOptions, TestNode, TestWorkflow } from '../../../support/engine';
import { claimHandles, settle } from '../../../support/settling';
import { claimNode, claimsOf, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, Workbench } from '../../../support/workbench';

export const CLAIM_STORE = 'n8n-nodes-idempotent-claim.claimStore';
export const CLAIM_STORE_TOOL = 'n8n-nodes-idempotent-claim.claimStoreTool';
const AGENT = '@n8n/n8n-nodes-langchain.agent';

/** A workbench that knows the Claim Store, the tool that n8n makes of it, and an agent to use it. */
export async function openDesk(): Promise<Workbench> {
	return await Workbench.open({ [CLAIM_STORE]: new ClaimStore(), [CLAIM_STORE_TOOL]: asTool(new ClaimStore()), [AGENT]: agent });
}

export function storeNode(parameters: IDataObject, settings: Partial<TestNode> = {}): TestNode {
	return { type: CLAIM_STORE, credential: 'store', parameters, ...settings };
}

/** Start → Store → Next. */
export function desk(parameters: IDataObject, settings: Partial<TestNode> = {}): TestWorkflow {
	return {
		nodes: { Start: { type: 'n8n-nodes-base.webhook' }, Store: storeNode(parameters, settings), Next: { type: 'n8n-nodes-base.noOp' } },
		lines: ['Start -> Store', 'Store -> Next'],
	};
}

/** Runs one operation for one empty item, unless told otherwise, and gives its items. */
export async function ask(workbench: Workbench, parameters: IDataObject, options: RunOptions & { settings?: Partial<TestNode> } = {}): Promise<IDataObject[]> {
	const { settings, ...run } = options;
	const finished = await workbench.run(desk(parameters, settings), run);
	// The engine keeps a plain object in the place of the error.
	if (finished.error) throw Object.assign(new Error(), finished.error, { message: finished.error.message });
	return finished.outputOf('Store');
}

/** The record of one delivery, as an operator looks it up; every delivery of these tests is of the source `shop`. */
export async function look(workbench: Workbench, deliveryId: string, more: IDataObject = {}): Promise<IDataObject> {
	const [item] = await ask(workbench, { operation: 'get', source: 'shop', deliveryId, action: 'lead', ...more });
	if (!item) throw new Error(`No claim of ${deliveryId}`);
	return item;
}

/** Decides about the record that this handle shows. */
export async function decide(workbench: Workbench, handle: unknown, parameters: IDataObject = {}, options: RunOptions = {}): Promise<IDataObject> {
	const [item] = await ask(workbench, { operation: 'resolve', handle: handle as string, decision: 'needsReview', decidedBy: 'Ada', reason: 'looked it up', ...parameters }, options);
	return item;
}

/** Claims a delivery and leaves it in a state, by the nodes that do so. */
export async function bring(workbench: Workbench, deliveryId: string, state: string, parameters: IDataObject = {}): Promise<void> {
	if (state === 'received') {
		await workbench.run(guarded(claimNode({ operation: 'receive', ...parameters })), { items: deliveries(deliveryId) });
		return;
	}
	const handles = await claimHandles(workbench, [deliveryId], parameters);
	const outcome = { processing: null, completed: 'completed', retryable_failure: 'retryableFailure', outcome_uncertain: 'outcomeUncertain', needs_review: 'needsReview' }[state];
	if (outcome) await settle(workbench, handles, { outcome });
}

/** What the next delivery of that ID hears. */
export async function deliver(workbench: Workbench, deliveryId: string): Promise<string> {
	const run = await workbench.run(guarded(), { items: deliveries(deliveryId) });
	const [claim] = [...claimsOf(run, 'Claim', NEW_CLAIM), ...claimsOf(run, 'Claim', KNOWN_DUPLICATE)];
	return `${claim.status} ${claim.reason}, attempt ${claim.attempt}`;
}

/** A workflow in which an agent calls the Claim Store once, with these arguments; its answer, or its complaint, is the agent's item. */
export async function askAsAgent(workbench: Workbench, parameters: IDataObject, args: IDataObject = {}): Promise<FinishedRun> {
	return await workbench.run(
		{
			nodes: {
				Start: { type: 'n8n-nodes-base.webhook' },
				Agent: { type: AGENT, parameters: { args: JSON.stringify(args) } },
				Store: { type: CLAIM_STORE_TOOL, credential: 'store', parameters },
			},
			lines: ['Start -> Agent', 'Store -ai_tool-> Agent'],
		},
		{ items: [{ json: {} }] },
	);
}

/** What n8n makes of a node that is usable as a tool (n8n 2.41, `convertNodeToAiTool`), as far as the node can notice. */
function asTool(node: INodeType): INodeType {
	const { usableAsTool: _usable, ...description } = node.description;
	const tool = Object.create(node, {
		description: { value: { ...description, name: `${description.name}Tool`, displayName: `${description.displayName} Tool`, inputs: [], outputs: [NodeConnectionTypes.AiTool] } },
	}) as INodeType;
	return tool;
}

interface Tool {
	name: string;
	description: string;
	schema: { shape: Record<string, unknown> };
	invoke(args: IDataObject): Promise<string>;
}

/** Calls its only tool once, by n8n-core's own way from agent to tool. */
const agent: INodeType = {
	description: {
		displayName: 'Agent',
		name: 'agent',
		group: ['transform'],
		version: 1,
		description: 'Agent',
		defaults: { name: 'Agent' },
		inputs: [NodeConnectionTypes.Main, NodeConnectionTypes.AiTool],
		outputs: [NodeConnectionTypes.Main],
		properties: [{ displayName: 'args', name: 'args', type: 'string', default: '{}' }],
	},
	async execute() {
		const [tool] = (await this.getInputConnectionData(NodeConnectionTypes.AiTool, 0)) as Tool[];
		const args = JSON.parse(this.getNodeParameter('args', 0) as string) as IDataObject;
		const item: INodeExecutionData = { json: { description: tool.description, asks: Object.keys(tool.schema.shape) } };
		try {
			item.json.answer = JSON.parse(await tool.invoke(args)) as IDataObject;
		} catch (failure) {
			item.json.complaint = String((failure as Error).message);
		}
		return [[item]];
	},
};
