import { ExecutionLifecycleHooks, WorkflowExecute } from 'n8n-core';
import {
	createRunExecutionData,
	NodeConnectionTypes,
	Workflow,
	type IConnections,
	type ICredentialType,
	type IDataObject,
	type INode,
	type INodeExecutionData,
	type INodeParameters,
	type INodeType,
	type INodeTypes,
	type IRun,
	type IRunExecutionData,
	type ITaskData,
	type IWorkflowExecuteAdditionalData,
	type NodeConnectionType,
	type NodeExecutionHint,
	type WorkflowExecuteMode,
} from 'n8n-workflow';
import { CredentialVault, type StoredCredential } from './credentialVault';

/** A node of a test workflow: its type, parameters, and what the Settings tab can change. */
export interface TestNode extends Partial<Omit<INode, 'name' | 'type' | 'parameters' | 'credentials'>> {
	type: string;
	parameters?: IDataObject;
	/** Which stored credential (a key of the run's `credentials`) the node uses, if any. */
	credential?: string;
}

/**
 * A workflow as tests write it. Lines read `Claim -> Action` (output 0), `Claim[2] -> Alarm`, or
 * `Left -> Merge[1]` for another input, `Tool -ai_tool-> Agent` for a connection of another kind.
 */
export interface TestWorkflow {
	id?: string;
	name?: string;
	nodes: Record<string, TestNode>;
	lines: string[];
}

export interface RunOptions {
	/** Items that the start node gives; one empty item when left out. */
	items?: INodeExecutionData[];
	/** The same for a start node with several outputs. */
	outputs?: INodeExecutionData[][];
	/** The node to begin with; the first one listed when left out. */
	from?: string;
	/** Stop after this node, as "Execute step" does, or as if the worker had died right behind it. */
	until?: string;
	/** With `resume`: forget what this node did last and begin with it again, on the same input. */
	redo?: string;
	mode?: WorkflowExecuteMode;
	rootExecutionMode?: WorkflowExecuteMode;
	executionId?: string;
	credentials?: Record<string, StoredCredential>;
	/** Workflows that Execute Sub-workflow nodes can call, by ID. */
	subWorkflows?: Record<string, TestWorkflow>;
}

/** n8n's own engine with a set of node types: `new Engine({...}).run(workflow, {...})`. */
export class Engine {
	private executionsStarted = 0;

	constructor(
		private readonly nodeTypes: Record<string, INodeType>,
		private readonly credentialTypes: ICredentialType[] = [],
	) {}

	/** Runs a workflow to its end. Never throws for what a node does: look at the run's `status` and `error`. */
	async run(definition: TestWorkflow, options: RunOptions = {}): Promise<FinishedRun> {
		const workflow = this.workflowOf(definition);
		const from = options.from ?? Object.keys(definition.nodes)[0];
		const startNode = workflow.getNode(from);
		if (!startNode) throw new Error(`The test workflow has no node ${from}`);
		const data = createRunExecutionData({
			startData: options.until ? { destinationNode: { nodeName: options.until, mode: 'inclusive' }, runNodeFilter: [...workflow.getParentNodes(options.until), options.until] } : {},
			executionData: { nodeExecutionStack: [{ node: startNode, data: { main: options.outputs ?? [options.items ?? [{ json: {} }]] }, source: null }] },
		});
		return await this.process(workflow, data, options);
	}

	/** What n8n makes of a workflow before it activates its triggers. */
	prepare(definition: TestWorkflow, options: RunOptions = {}): { workflow: Workflow; additionalData: IWorkflowExecuteAdditionalData } {
		return { workflow: this.workflowOf(definition), additionalData: this.additionalData('', 'trigger', options) };
	}

	/**
	 * Goes on from stored run data: after a Wait, as a user's Retry (mode `retry`, a new execution ID), or as a
	 * job that is run again under its old ID. The data has been through JSON, as it has in n8n's database.
	 */
	async resume(definition: TestWorkflow, stored: IRunExecutionData, options: RunOptions): Promise<FinishedRun> {
		const workflow = this.workflowOf(definition);
		const data = JSON.parse(JSON.stringify(stored)) as IRunExecutionData;
		if (options.redo) putBackOnStack(workflow, data, options.redo);
		return await this.process(workflow, data, options);
	}

	private async process(workflow: Workflow, data: IRunExecutionData, options: RunOptions): Promise<FinishedRun> {
		const executionId = options.executionId ?? String(++this.executionsStarted);
		const mode = options.mode ?? 'webhook';
		const additionalData = this.additionalData(executionId, mode, options);
		const run = await new WorkflowExecute(additionalData, mode, data).processRunExecutionData(workflow);
		return new FinishedRun(executionId, run);
	}

	private workflowOf({ id = 'workflow-under-test', name = 'Under test', nodes, lines }: TestWorkflow): Workflow {
		return new Workflow({
			id,
			name,
			nodes: Object.entries(nodes).map(([nodeName, node], index) => toNode(nodeName, node, index)),
			connections: toConnections(lines),
			active: true,
			nodeTypes: this.nodeTypeRegistry(),
			settings: { executionOrder: 'v1' },
		});
	}

	private nodeTypeRegistry(): INodeTypes {
		const find = (type: string): INodeType => {
			const found = this.nodeTypes[type];
			if (!found) throw new Error(`The test engine has no node type ${type}`);
			return found;
		};
		return { getByName: find, getByNameAndVersion: find, getKnownTypes: () => ({}) };
	}

	private additionalData(executionId: string, mode: WorkflowExecuteMode, options: RunOptions): IWorkflowExecuteAdditionalData {
		const finished = new Map<string, IRunExecutionData>();
		const base = 'http://n8n.example.com';
		return {
			executionId,
			currentNodeExecutionIndex: 0,
			credentialsHelper: new CredentialVault(options.credentials ?? {}, this.credentialTypes),
			hooks: new ExecutionLifecycleHooks(mode, executionId, {} as never),
			rootExecutionMode: options.rootExecutionMode,
			restApiUrl: base,
			instanceBaseUrl: base,
			formBaseUrl: base,
			formWaitingBaseUrl: base,
			formTestBaseUrl: base,
			webhookBaseUrl: base,
			webhookWaitingBaseUrl: base,
			webhookTestBaseUrl: base,
			mcpBaseUrl: base,
			mcpTestBaseUrl: base,
			variables: {},
			logAiEvent: () => undefined,
			getRuntimeCredential: async () => undefined,
			startRunnerTask: unsupported,
			// The test credentials read no external secrets.
			externalSecretsProxy: undefined as never,
			getRunExecutionData: async (id) => finished.get(id),
			// As n8n does it: mode "integrated", an execution ID of its own, and the mode at the root handed down.
			executeWorkflow: async (workflowInfo, parent, { inputData, executionMode }) => {
				const called = options.subWorkflows?.[workflowInfo.id ?? ''];
				if (!called) throw new Error(`The test run has no sub-workflow ${workflowInfo.id}`);
				const sub = await this.run(
					{ id: workflowInfo.id, ...called },
					{
						...options,
						from: undefined,
						until: undefined,
						items: inputData,
						executionId: `${executionId}-sub-${finished.size + 1}`,
						mode: 'integrated',
						rootExecutionMode: parent.rootExecutionMode ?? executionMode,
					},
				);
				if (sub.error) throw sub.error;
				finished.set(sub.executionId, sub.data);
				return { executionId: sub.executionId, data: sub.lastOutputs() };
			},
		};
	}
}

async function unsupported(): Promise<never> {
	return await Promise.reject(new Error('The test engine has no task runner'));
}

/** What is left of an execution, in the words that tests ask in. */
export class FinishedRun {
	constructor(
		readonly executionId: string,
		private readonly run: IRun,
	) {}

	/** `success`, `error`, `waiting`, … as in n8n's list of executions. */
	get status(): string {
		return this.run.status;
	}

	/** Why the execution failed, if it did. */
	get error(): Error | undefined {
		return this.run.data.resultData.error;
	}

	get data(): IRunExecutionData {
		return this.run.data;
	}

	/** Whether the node got anything to do. */
	ran(node: string): boolean {
		return this.timesRun(node) > 0;
	}

	timesRun(node: string): number {
		return this.run.data.resultData.runData[node]?.length ?? 0;
	}

	/** The items that left by one output; none when the node did not run or sent none there. */
	itemsOf(node: string, output = 0, runIndex = 0): INodeExecutionData[] {
		return this.task(node, runIndex)?.data?.main?.[output] ?? [];
	}

	/** As `itemsOf`, the JSON alone. */
	outputOf(node: string, output = 0, runIndex = 0): IDataObject[] {
		return this.itemsOf(node, output, runIndex).map(({ json }) => json);
	}

	/** Every item that one output gave, over all runs of the node. */
	allOutputOf(node: string, output = 0): IDataObject[] {
		return Array.from({ length: this.timesRun(node) }, (_, runIndex) => this.outputOf(node, output, runIndex)).flat();
	}

	errorOf(node: string, runIndex = 0): Error | undefined {
		return this.task(node, runIndex)?.error;
	}

	/** What the editor shows as hints on the node's output. */
	hintsOf(node: string, runIndex = 0): string[] {
		const hints: NodeExecutionHint[] = this.task(node, runIndex)?.hints ?? [];
		return hints.map(({ message }) => message);
	}

	/** All that n8n would store of this execution, to look for what must not be in it. */
	everything(): string {
		return JSON.stringify(this.run) + String(this.error?.stack);
	}

	lastOutputs(): Array<INodeExecutionData[] | null> {
		const { lastNodeExecuted, runData } = this.run.data.resultData;
		return (lastNodeExecuted && runData[lastNodeExecuted]?.at(-1)?.data?.main) || [[]];
	}

	private task(node: string, runIndex: number): ITaskData | undefined {
		return this.run.data.resultData.runData[node]?.[runIndex];
	}
}

/** As n8n stores an execution that failed in this node. */
function putBackOnStack(workflow: Workflow, data: IRunExecutionData, nodeName: string): void {
	const { runData } = data.resultData;
	const node = workflow.getNode(nodeName);
	const source = runData[nodeName]?.pop()?.source;
	if (!node || !source || !data.executionData) throw new Error(`${nodeName} has not run`);
	const main = source.map((from) => (from ? (runData[from.previousNode][from.previousNodeRun ?? 0].data?.main?.[from.previousNodeOutput ?? 0] ?? null) : null));
	data.executionData.nodeExecutionStack = [{ node, data: { main }, source: { main: source } }];
	data.startData = {};
}

function toNode(name: string, { type, parameters = {}, credential, ...settings }: TestNode, index: number): INode {
	return {
		id: `node-${index}-${name}`,
		name,
		type,
		typeVersion: 1,
		position: [index * 200, 0],
		parameters: parameters as INodeParameters,
		...(credential && { credentials: { claimStoreApi: { id: credential, name: credential } } }),
		...settings,
	};
}

const LINE = /^(.+?)(?:\[(\d)\])? -(?:(\w+)-)?> (.+?)(?:\[(\d)\])?$/;

function toConnections(lines: string[]): IConnections {
	const connections: IConnections = {};
	for (const line of lines) {
		const [, from, output = '0', kind = NodeConnectionTypes.Main, to, input = '0'] = LINE.exec(line) ?? [];
		if (!from) throw new Error(`Not a line of a test workflow: ${line}`);
		const outputs = ((connections[from] ??= {})[kind] ??= []);
		for (let index = 0; index <= Number(output); index++) outputs[index] ??= [];
		outputs[Number(output)]?.push({ node: to, type: kind as NodeConnectionType, index: Number(input) });
	}
	return connections;
}
