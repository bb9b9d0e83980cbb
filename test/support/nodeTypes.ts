import {
	NodeConnectionTypes,
	type IDataObject,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeProperties,
	type INodeType,
	type IPairedItemData,
	type ISourceData,
} from 'n8n-workflow';

/**
 * Small stand-ins for the nodes that people put around ours. Each does honestly the one thing that
 * matters to item linking or to the engine; names of n8n's own types are used where ours look at them.
 */

type Execute = (this: IExecuteFunctions) => Promise<INodeExecutionData[][] | null>;

interface Shape {
	inputs?: number;
	outputs?: number;
	parameters?: IDataObject;
}

/** A regular node. Parameters must be declared, because n8n drops those that a type does not know. */
function nodeType(name: string, { inputs = 1, outputs = 1, parameters = {} }: Shape, execute?: Execute): INodeType {
	return {
		description: {
			displayName: name,
			name,
			group: ['transform'],
			version: 1,
			description: name,
			defaults: { name },
			inputs: Array.from({ length: inputs }, () => NodeConnectionTypes.Main),
			outputs: Array.from({ length: outputs }, () => NodeConnectionTypes.Main),
			properties: Object.entries(parameters).map(([parameter, value]) => property(parameter, value)),
		},
		...(execute && { execute }),
	};
}

function property(name: string, value: unknown): INodeProperties {
	const type = typeof value === 'number' ? 'number' : typeof value === 'boolean' ? 'boolean' : 'string';
	return { displayName: name, name, type, default: value as string };
}

/** The node that an execution begins with: gives the items that the run was started with, as a Webhook node does. */
const start: INodeType = {
	...nodeType('start', { inputs: 0, parameters: { responseMode: 'responseNode', responseData: 'firstEntryJson' } }),
	webhook: async () => ({}),
};

const noOp = nodeType('noOp', {}, async function () {
	return [this.getInputData()];
});

/** One new object per item, paired: HTTP Request, most app nodes. */
const perItem = nodeType('perItem', {}, async function () {
	return [this.getInputData().map((_, item) => ({ json: { id: `created-${item + 1}` }, pairedItem: { item } }))];
});

/**
 * A Code node that runs once for all items and gives no pairing: the engine pairs by position where
 * the counts are equal. `how`: newObjects | reversed | oneOfMany | dropFirst | keepClaim.
 */
const code = nodeType('code', { parameters: { how: 'newObjects', mode: 'runOnceForAllItems' } }, async function () {
	const items = this.getInputData();
	const fresh = items.map(({ json }, index) => ({ json: { made: index + 1, of: json.name ?? null } }));
	switch (this.getNodeParameter('how', 0)) {
		case 'reversed':
			return [fresh.reverse()];
		case 'oneOfMany':
			return [[{ json: { count: items.length } }]];
		case 'dropFirst':
			return [fresh.slice(1)];
		case 'keepClaim':
			return [items.map(({ json }) => ({ json: { claim: json.claim } })).reverse()];
		case 'explicitPairing':
			return [fresh.map((item, index) => ({ ...item, pairedItem: { item: index } })).reverse()];
		default:
			return [fresh];
	}
});

/** Many items to one that is paired with all of them. */
const aggregate = nodeType('aggregate', {}, async function () {
	const items = this.getInputData();
	return [[{ json: { data: items.map(({ json }) => json) }, pairedItem: items.map((_, item) => ({ item })) }]];
});

/** Merge by position: each item is paired with one of either input. */
const merge = nodeType('merge', { inputs: 2 }, async function () {
	const [left, right] = [this.getInputData(0), this.getInputData(1)];
	const count = Math.min(left.length, right.length);
	return [
		Array.from({ length: count }, (_, item) => ({
			json: { merged: item + 1 },
			pairedItem: [
				{ item, input: 0 },
				{ item, input: 1 },
			],
		})),
	];
});

/** Merge by appending: each item is paired with the one that it is. */
const append = nodeType('append', { inputs: 2 }, async function () {
	return [[0, 1].flatMap((input) => this.getInputData(input).map((entry, item) => ({ ...entry, pairedItem: { item, input } })))];
});

/** Sends item 0, 2, … to output 0 and the others to output 1, paired: an If node. */
const alternate = nodeType('alternate', { outputs: 2 }, async function () {
	const items = this.getInputData().map((item, index) => ({ ...item, pairedItem: { item: index } }));
	return [items.filter((_, index) => index % 2 === 0), items.filter((_, index) => index % 2 === 1)];
});

/** Loop Over Items: output 0 when done, output 1 for the next item; later rounds point to the first round's source. */
const loop = nodeType('splitInBatches', { outputs: 2 }, async function () {
	const memory = this.getContext('node') as { waiting?: INodeExecutionData[]; done?: INodeExecutionData[]; source?: ISourceData };
	const source = this.getInputSourceData();
	const incoming = this.getInputData();
	if (memory.waiting === undefined) {
		memory.waiting = [...incoming];
		memory.done = [];
		memory.source = source;
	} else {
		memory.done?.push(...incoming.map((item, index) => ({ ...item, pairedItem: { item: index, sourceOverwrite: source } })));
	}
	const next = memory.waiting.shift();
	if (next === undefined) return [memory.done ?? [], []];
	return [[], [{ ...next, pairedItem: { ...(next.pairedItem as IPairedItemData), sourceOverwrite: memory.source } }]];
});

/** Sends its item back into a loop `rounds` times by output 0, then on by output 1. Keeps the item as it is. */
const repeat = nodeType('repeat', { outputs: 2, parameters: { rounds: 1, strip: true } }, async function () {
	const memory = this.getContext('node') as { round?: number };
	memory.round = (memory.round ?? 0) + 1;
	const items = this.getInputData().map(({ json: { claim: _claim, ...json } }, item) => ({ json, pairedItem: { item } }));
	return memory.round <= (this.getNodeParameter('rounds', 0) as number) ? [items, []] : [[], items];
});

/** Wait: the execution is stored and goes on later. */
const wait = nodeType('wait', {}, async function () {
	await this.putExecutionToWait(new Date(Date.now() + 86_400_000));
	return [this.getInputData()];
});

/** Throws, as an action that fails does. */
const fail = nodeType('fail', {}, async function () {
	return await Promise.reject(new Error('The destination answered 500'));
});

/** Execute Sub-workflow, waiting for its end, all items at once. */
const executeWorkflow = nodeType('executeWorkflow', { parameters: { workflowId: '' } }, async function () {
	const items = this.getInputData();
	const { data } = await this.executeWorkflow({ id: this.getNodeParameter('workflowId', 0) as string }, items, undefined, {
		parentExecution: { executionId: this.getExecutionId(), workflowId: String(this.getWorkflow().id), shouldResume: true },
		executionMode: this.getMode(),
	});
	return data.map((output) => (output ?? []).map((item, index) => ({ ...item, pairedItem: { item: index } })));
});

/** Puts fields (a JSON text) over each item, kept whole otherwise: Edit Fields. */
const setFields = nodeType('set', { parameters: { fields: '{}' } }, async function () {
	const fieldsFor = (index: number) => JSON.parse(this.getNodeParameter('fields', index) as string) as IDataObject;
	return [this.getInputData().map((item, index) => ({ ...item, json: { ...item.json, ...fieldsFor(index) }, pairedItem: { item: index } }))];
});

export const testNodeTypes: Record<string, INodeType> = {
	'n8n-nodes-base.webhook': start,
	'n8n-nodes-base.executeWorkflowTrigger': start,
	'n8n-nodes-base.noOp': noOp,
	'n8n-nodes-base.httpRequest': perItem,
	'n8n-nodes-base.code': code,
	'n8n-nodes-base.aggregate': aggregate,
	'n8n-nodes-base.merge': merge,
	'n8n-nodes-base.if': alternate,
	'test.append': append,
	'n8n-nodes-base.splitInBatches': loop,
	'n8n-nodes-base.wait': wait,
	'n8n-nodes-base.set': setFields,
	'n8n-nodes-base.executeWorkflow': executeWorkflow,
	'test.repeat': repeat,
	'test.fail': fail,
};
