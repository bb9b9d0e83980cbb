import type { IExecuteFunctions, INodeParameters, NodeExecutionHint } from 'n8n-workflow';
import { presetOf, retentionTooShort, windowInDays, type ProviderPreset } from '../../providers';
import type { Operation } from '../../store/record';
import { errorInWords, type ClaimField } from '../shared/claimField';
import { rawParameter, readOptions } from '../shared/parameters';
import { isOurNode, isOutputConnected, type NodeRun } from '../shared/run';
import { KNOWN_DUPLICATE, OPERATIONAL_ERROR } from './outputs';

/** What a person who runs the node in the editor should know about this workflow. */
export function hintsFor(context: IExecuteFunctions, run: NodeRun, operation: Operation, fields: readonly ClaimField[]): NodeExecutionHint[] {
	const hints: NodeExecutionHint[] = [];
	const warn = (message: string) => hints.push({ message, type: 'warning', location: 'outputPane' });
	const inform = (message: string) => hints.push({ message, type: 'info', location: 'outputPane' });

	const failed = fields.find(({ error }) => error !== null);
	if (failed?.error) warn(errorInWords(failed.error));
	if (failed && !isOutputConnected(run, OPERATIONAL_ERROR)) {
		warn('Operational Error is not connected. In production an item that is due there fails the execution, so that the sender delivers again.');
	}
	const provider = context.getNodeParameter('provider', 0, 'custom');
	if (provider === 'custom' && !rawParameter(context, 'deliveryId', 0).startsWith('=')) {
		warn('The Delivery ID is fixed text, so every delivery has the same. Switch it from Fixed to Expression and read it from the item.');
	}
	const preset = typeof provider === 'string' ? presetOf(provider) : undefined;
	if (preset && isRetentionTooShort(context, preset)) warn(retentionTooShort(preset));
	if (fields.some(({ identity }) => names(identity.deliveryId, run.owner.executionId))) {
		warn(`The Delivery ID holds this execution's ID (${run.owner.executionId}). If it is made from it, no delivery will ever be a duplicate: use the identifier that the sender repeats.`);
	}
	if (operation === 'claim' && !leadsToCompletion(context, run)) {
		warn('No Complete Claim follows this node. Without one every claim ends as "outcome uncertain" when its lease runs out.');
	}
	if (operation !== 'deduplicate' && answersBeforeTheClaim(context, run)) {
		warn('The Webhook node answers "Immediately", before anything is claimed: a delivery that fails here is never sent again. Set its Respond to "Using \'Respond to Webhook\' Node".');
	}
	if (!isOutputConnected(run, KNOWN_DUPLICATE) && answersWithTheLastItem(context, run)) {
		warn('The Webhook node answers "When Last Node Finishes", and Known Duplicate is not connected: n8n finds nothing to answer a duplicate with, says 500, and the sender comes again. Connect Known Duplicate, for instance to a No Operation node.');
	}
	if (run.node.executeOnce === true) {
		warn('Execute Once is on: only the first item is claimed; the others are dropped without a word.');
	}
	const duplicates = fields.filter(({ status }) => status === 'duplicate');
	if (duplicates.some(({ record }) => record?.identity.environment === 'test')) {
		inform('A test run has claimed this delivery before. To get New Claim again, send a new ID or set Manual Executions to "Always New" in the Options.');
	}
	if (duplicates.some(({ record }) => record?.identity.environment === 'live')) {
		inform('This delivery was handled in production, so a test run does not repeat it. To try it out all the same, set Manual Executions to "Always New" in the Options, or send a new ID.');
	}
	return hints;
}

/** Whether Retention is set below the window in which the sender may deliver again. */
function isRetentionTooShort(context: IExecuteFunctions, preset: ProviderPreset): boolean {
	const window = windowInDays(preset);
	return window !== null && retentionDays(context, preset) < window;
}

function retentionDays(context: IExecuteFunctions, preset: ProviderPreset): number {
	try {
		return Number(readOptions(context, 0).retentionDays ?? preset.retentionDays);
	} catch {
		// The item's own error says what is wrong with the Options.
		return preset.retentionDays;
	}
}

/** Whether the execution's ID is one of the words of a delivery ID, as in "41" or "41-Webhook". */
function names(deliveryId: string | undefined, executionId: string): boolean {
	return deliveryId?.split(/[^\p{L}\p{N}]+/u).includes(executionId) ?? false;
}

/** A sub-workflow may complete the claim by its handle, so calling one counts. */
function leadsToCompletion(context: IExecuteFunctions, run: NodeRun): boolean {
	return context.getChildNodes(run.node.name).some(({ type, disabled }) => !disabled && (isOurNode(type, 'completeClaim') || type === 'n8n-nodes-base.executeWorkflow'));
}

function answersBeforeTheClaim(context: IExecuteFunctions, run: NodeRun): boolean {
	return webhooksBefore(context, run).some(({ responseMode = 'onReceived' }) => responseMode === 'onReceived');
}

/** n8n looks for that item on the first output of the node that ran last. */
function answersWithTheLastItem(context: IExecuteFunctions, run: NodeRun): boolean {
	return webhooksBefore(context, run).some(({ responseMode, responseData = 'firstEntryJson' }) => responseMode === 'lastNode' && (responseData === 'firstEntryJson' || responseData === 'firstEntryBinary'));
}

function webhooksBefore(context: IExecuteFunctions, run: NodeRun): INodeParameters[] {
	return context
		.getParentNodes(run.node.name, { includeNodeParameters: true })
		.filter(({ type, disabled }) => !disabled && type === 'n8n-nodes-base.webhook')
		.map(({ parameters }) => parameters ?? {});
}
