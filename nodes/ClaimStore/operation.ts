import type { IDataObject, IExecuteFunctions, INodeProperties } from 'n8n-workflow';
import type { ClaimStore } from '../../store/claimStore';
import type { NodeRun } from '../shared/run';

export type OperationName = 'check' | 'get' | 'getMany' | 'purge' | 'resolve' | 'summarize';

/** One run of an operation for one input item. */
export interface OperationCall {
	readonly context: IExecuteFunctions;
	readonly run: NodeRun;
	readonly itemIndex: number;
	/** Whether an AI agent calls. */
	readonly isTool: boolean;
	/** @throws ClaimError */
	readonly store: () => Promise<ClaimStore>;
}

export interface StoreOperation {
	/** As the editor lists it. */
	readonly option: { name: string; value: OperationName; action: string; description: string };
	/** Agents look; what is decided or removed is a person's word. */
	readonly forAgents: boolean;
	/** What it asks for in the editor; shown for this operation alone. */
	readonly properties: INodeProperties[];
	/**
	 * Reads what is asked for, before anything is done for any item.
	 *
	 * @returns the work itself, which gives the items
	 * @throws ClaimError `invalid_setting`
	 */
	readonly prepare: (call: OperationCall) => () => Promise<IDataObject[]>;
}

/** Properties that are shown for one operation only, beside their own conditions. */
export function shownFor(operation: OperationName, properties: INodeProperties[]): INodeProperties[] {
	return properties.map((property) => ({
		...property,
		displayOptions: { ...property.displayOptions, show: { operation: [operation], ...property.displayOptions?.show } },
	}));
}
