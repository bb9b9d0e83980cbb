import { NodeOperationError, type INode, type IPollFunctions, type WorkflowActivateMode } from 'n8n-workflow';
import { asClaimError, type ClaimError } from '../../store/errors';

/**
 * Whether an error of the first poll fails the publication of the workflow. Seen in n8n 2.41: a trigger whose first
 * poll throws is tried five times within some seconds, and is then dead until somebody publishes the workflow again,
 * also when n8n has just been restarted and its database server is a minute late. So only a person who is publishing
 * at this moment is stopped, and only by what waiting does not mend.
 */
const FAILS_PUBLICATION: Partial<Record<WorkflowActivateMode, (error: ClaimError) => boolean>> = {
	create: (error) => !error.retryable,
	activate: (error) => !error.retryable,
	// n8n also uses it for triggers that it brings back by itself.
	update: ({ kind }) => kind === 'invalid_setting',
};

/**
 * Makes a failure of a poll visible: to the person who runs or publishes the workflow, or as a failed execution that
 * n8n lists and hands to the error workflow. The next poll tries again.
 */
export function failPoll(context: IPollFunctions, failure: unknown): null {
	const error = asClaimError(failure);
	const problem = new NodeOperationError(context.getNode(), error.message, { description: error.hint ?? undefined });
	if (context.getMode() === 'manual') {
		stopOnError(context);
		throw problem;
	}
	if (FAILS_PUBLICATION[context.getActivationMode()]?.(error)) throw problem;
	context.__emitError(problem);
	return null;
}

/** With On Error "Continue" the engine would send an empty item out of Ready to Run. `getNode()` gives a copy. */
function stopOnError(context: IPollFunctions): void {
	const { node } = context as unknown as { node?: Partial<Pick<INode, 'onError' | 'continueOnFail'>> };
	if (node === undefined) return;
	node.onError = 'stopWorkflow';
	node.continueOnFail = false;
}
