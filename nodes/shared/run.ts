import { randomUUID } from 'node:crypto';
import type { IConnections, IExecuteFunctions, INode, INodes, IRunExecutionData, WorkflowExecuteMode } from 'n8n-workflow';
import { makeOwnerToken } from '../../store/handle';
import type { Owner } from '../../store/record';

/**
 * What n8n's engine knows about this run of the node. Some of it is on the execution context's class but not in
 * its typed interface; every such reach is here, and each has an answer for the day it is gone.
 */
export interface NodeRun {
	readonly owner: Owner;
	readonly runIndex: number;
	/** Random; the same when n8n's Retry On Fail runs the node again, and for nobody else. */
	readonly nonce: string;
	readonly node: INode;
	/** A person runs this in the editor, or this serves such a run. */
	readonly isManual: boolean;
	/** A manual run or an evaluation: what it claims is kept apart from what senders deliver. */
	readonly isTest: boolean;
	/** A sub-workflow of an n8n that does not say how the root runs: then only the Webhook's item can tell. */
	readonly modeIsUnknown: boolean;
	/** Whether a failing node stops the execution (n8n's default). */
	readonly stopsOnError: boolean;
	/** All nodes and connections of the workflow; empty when the engine does not tell. */
	readonly workflowNodes: INodes;
	readonly connections: IConnections;
	readonly runExecutionData: IRunExecutionData | null;
}

interface EngineContext {
	runIndex?: number;
	additionalData?: { rootExecutionMode?: WorkflowExecuteMode };
	workflow?: { nodes?: INodes; connectionsBySourceNode?: IConnections };
	runExecutionData?: IRunExecutionData;
}

export function describeRun(context: IExecuteFunctions): NodeRun {
	const engine = context as unknown as EngineContext;
	const node = context.getNode();
	const workflow = context.getWorkflow();
	const runIndex = engine.runIndex ?? 0;
	const mode = context.getMode();
	const rootMode = engine.additionalData?.rootExecutionMode;
	const modes = [mode, rootMode];
	const runExecutionData = engine.runExecutionData ?? null;
	const workflowNodes = engine.workflow?.nodes ?? {};
	const memory = context.getContext('node');
	const memoryKey = `ownership:${runIndex}`;
	memory[memoryKey] ??= randomUUID();
	const nonce = String(memory[memoryKey]);
	return {
		owner: {
			instanceId: context.getInstanceId(),
			workflowId: workflow.id ?? '',
			// Without an execution ID two runs must still not look like one.
			executionId: context.getExecutionId() ?? `unsaved-${nonce}`,
			nodeId: node.id,
			nodeName: node.name,
		},
		runIndex,
		nonce,
		node,
		isManual: modes.includes('manual'),
		isTest: modes.includes('manual') || modes.includes('evaluation') || (mode === 'retry' && beganAsTest(workflowNodes, runExecutionData)),
		modeIsUnknown: mode === 'integrated' && rootMode === undefined,
		stopsOnError: node.onError === undefined ? node.continueOnFail !== true : node.onError === 'stopWorkflow',
		workflowNodes,
		connections: engine.workflow?.connectionsBySourceNode ?? {},
		runExecutionData,
	};
}

/** A retried execution that began with a test delivery: told by what its own Webhook node put out, which no sender can write. */
function beganAsTest(nodes: INodes, data: IRunExecutionData | null): boolean {
	return Object.entries(data?.resultData.runData ?? {}).some(
		([nodeName, [task]]) => nodes[nodeName]?.type === 'n8n-nodes-base.webhook' && isTestDelivery(task?.data?.main?.[0]?.[0]?.json ?? {}),
	);
}

/** n8n's Webhook node marks what came in while somebody listened for a test event. */
export function isTestDelivery(itemJson: Record<string, unknown>): boolean {
	return itemJson.executionMode === 'test' && typeof itemJson.webhookUrl === 'string';
}

/**
 * Whether something that is switched on is wired to an output of this node; a disabled node hands on by its first
 * output. Unknown counts as no: then a failure is loud.
 */
export function isOutputConnected(run: NodeRun, output: number): boolean {
	const visited = new Set<string>();
	const leadsOn = (nodeName: string, from: number): boolean =>
		(run.connections[nodeName]?.main?.[from] ?? []).some(({ node }) => {
			if (visited.has(node) || run.workflowNodes[node] === undefined) return false;
			visited.add(node);
			return run.workflowNodes[node].disabled !== true || leadsOn(node, 0);
		});
	return leadsOn(run.node.name, output);
}

/** Whether a node's type is one of this package, however the package was loaded. */
export function isOurNode(type: string, name: 'idempotentClaim' | 'completeClaim' | 'claimRecoveryTrigger'): boolean {
	return type === `n8n-nodes-idempotent-claim.${name}` || type === `CUSTOM.${name}`;
}

/** The token of what one item of this run does; the same when Retry On Fail runs it again. See `makeOwnerToken`. */
export function tokenOfItem({ nonce, owner, runIndex }: NodeRun, itemIndex: number): string {
	return makeOwnerToken({ nonce, executionId: owner.executionId, nodeId: owner.nodeId, runIndex, itemIndex });
}
