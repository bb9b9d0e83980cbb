import { NodeOperationError, type IDataObject, type IExecuteFunctions, type INodeExecutionData } from 'n8n-workflow';
import type { ClaimStore } from '../../store/claimStore';
import { asClaimError, invalidSetting } from '../../store/errors';
import { claimStoreOf } from '../shared/claimStore';
import { readChoice, readParameter } from '../shared/parameters';
import { describeRun } from '../shared/run';
import { OPERATION_NAMES, OPERATIONS } from './operations';
import type { OperationCall } from './operation';

/** Runs the chosen operation once per input item. What is wrong with an item's parameters is found before anything is done for any of them. */
export async function runOperation(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	const run = describeRun(context);
	const isTool = runsAsTool(context);
	let opening: Promise<ClaimStore> | undefined;
	const store = async () => await (opening ??= claimStoreOf(context));

	const goOn = context.continueOnFail();
	const fail = (failure: unknown, itemIndex: number): IDataObject[] => {
		const { message, hint } = asClaimError(failure);
		if (!goOn) throw new NodeOperationError(context.getNode(), message, { description: hint ?? undefined, itemIndex });
		// Of an error item's fields, the engine knows this one alone.
		return [{ error: [message, hint].filter(Boolean).join('. ') }];
	};
	const work = context.getInputData().map((_, itemIndex): (() => Promise<IDataObject[]>) => {
		try {
			return prepare({ context, run, itemIndex, isTool, store });
		} catch (failure) {
			const items = fail(failure, itemIndex);
			return async () => items;
		}
	});

	const output: INodeExecutionData[] = [];
	for (const [itemIndex, job] of work.entries()) {
		let items: IDataObject[];
		try {
			items = await job();
		} catch (failure) {
			items = fail(failure, itemIndex);
		}
		for (const json of items) output.push({ json, pairedItem: { item: itemIndex } });
	}
	return [output];
}

function prepare(call: OperationCall): () => Promise<IDataObject[]> {
	const { context, itemIndex, isTool } = call;
	const operation = OPERATIONS[readChoice('Operation', readParameter(context, 'operation', 'Operation', itemIndex), OPERATION_NAMES)];
	if (isTool && !operation.forAgents) {
		throw invalidSetting(`The operation ${operation.option.name} is not for AI agents: a person must decide`, 'Put the Claim Store node into the workflow itself, behind a step in which a person approves.');
	}
	return operation.prepare(call);
}

/** n8n names the tool that it makes of a node by the node's type and "Tool", and runs some of them like any other node. */
function runsAsTool(context: IExecuteFunctions): boolean {
	return context.getNode().type.endsWith('Tool') || context.isToolExecution?.();
}
