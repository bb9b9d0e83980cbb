import { randomUUID } from 'node:crypto';
import type { IConnections, IExecuteFunctions, INode, INodes, IRunExecutionData, WorkflowExecuteMode } from 'n8n-workflow';
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
	const modes = [context.getMode(), engine.additionalData?.rootExecutionMode];
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
		isTest: modes.includes('manual') || modes.includes('evaluation'),
		stopsOnError: node.onError === undefined ? node.continueOnFail !== true : node.onError === 'stopWorkflow',
		workflowNodes: engine.workflow?.nodes ?? {},
		connections: engine.workflow?.connectionsBySourceNode ?? {},
		runExecutionData: engine.runExecutionData ?? null,
	};
}

/** Whether something is wired to an output of this node. Unknown counts as no: then a failure is loud. */
export function isOutputConnected(run: NodeRun, output: number): boolean {
	return (run.connections[run.node.name]?.main?.[output] ?? []).length > 0;
}

/** Whether a node's type is one of this package, however the package was loaded. */
export function isOurNode(type: string, name: 'idempotentClaim' | 'completeClaim' | 'claimRecoveryTrigger'): boolean {
	return type === `n8n-nodes-idempotent-claim.${name}` || type === `CUSTOM.${name}`;
}
