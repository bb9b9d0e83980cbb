import { type IExecuteFunctions, NodeOperationError } from 'n8n-workflow';

/**
 * Ends the execution as failed, whatever the node's On Error setting: with "Continue", the engine would send the
 * node's input on by its first output, which is New Claim. So the setting of this run's node is put to "Stop
 * Workflow", and the engine's own input arrays are emptied, not what `getInputData()` returns: with Execute Once
 * that is a copy. With Retry On Fail they are left, because a retry with no input would count as a success.
 */
export function stopExecution(context: IExecuteFunctions, message: string, description: string): never {
	const { node, data } = context.getExecuteData();
	node.onError = 'stopWorkflow';
	node.continueOnFail = false;
	if (node.retryOnFail !== true) {
		for (const items of data.main ?? []) items?.splice(0);
	}
	throw new NodeOperationError(context.getNode(), message, { description });
}

/** "Always Output Data" adds an empty item to New Claim whenever nothing was claimed: refused before anything is done. */
export function refuseAlwaysOutputData(context: IExecuteFunctions): void {
	if (context.getNode().alwaysOutputData !== true) return;
	stopExecution(
		context,
		'Always Output Data is on: it would send an empty item out of the first output whenever that output has none',
		'Switch off "Always Output Data" in this node\'s Settings. Nothing was done.',
	);
}
