import type { IExecuteFunctions } from 'n8n-workflow';
import type { ClaimField } from './claimField';
import { isOutputConnected, type NodeRun } from './run';
import { stopExecution } from './stop';

/**
 * Whether items due at Operational Error must fail the execution: the output is not connected, nobody is watching,
 * and the node stops on errors. They would end in a green execution and a 200 to the sender, and the event be gone.
 */
export function mustFailLoudly(run: NodeRun, errorOutput: number, fields: readonly ClaimField[]): boolean {
	return fields.some(({ status }) => status === 'error') && !run.isManual && run.stopsOnError && !isOutputConnected(run, errorOutput);
}

/** Fails the execution with the first item's error. */
export function failLoudly(context: IExecuteFunctions, fields: readonly ClaimField[], whatElse: string): never {
	const failed = fields.filter(({ status }) => status === 'error');
	const error = failed[0].error;
	const share = `${failed.length} of ${fields.length} item${fields.length === 1 ? '' : 's'} would have left by Operational Error, which is not connected.`;
	stopExecution(context, error?.message ?? 'An item failed', [error?.hint, share, whatElse].filter(Boolean).join(' '));
}
