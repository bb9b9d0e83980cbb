import { randomUUID } from 'node:crypto';
import { DestinationClient } from '../../sandbox/destination';
import { sandboxAddress } from './support/address';
import { ClaimTable, type ClaimRow } from './support/claimTable';
import { itemsOf, N8n, type Execution, type SavedWorkflow } from './support/n8n';
import { callWebhook } from './support/webhookCall';
import { completeClaim, idempotentClaim, node, onlyFields, webhook, type PlannedNode } from './support/workflow';

const RECORDED = 0;
const OPERATIONAL_ERROR = 2;

/** Longer than n8n keeps a waiting execution in memory (65 s): it is stored, and loaded again. */
const WAIT_SECONDS = 66;

let n8n: N8n;
let claims: ClaimTable;
/** Begun before everything else, because it takes a minute. */
let longWait: Started;

beforeAll(async () => {
	n8n = new N8n();
	claims = new ClaimTable();
	longWait = await start({ between: [node('wait', 1.1, { resume: 'timeInterval', amount: WAIT_SECONDS, unit: 'seconds' })] });
});

afterAll(async () => {
	await claims.close();
});

/** What stands between Idempotent Claim and Complete Claim. */
interface Between {
	between: PlannedNode[];
	/** Where a chain does not do; `Claimed` is the last node before, `Complete Claim` the first one behind. */
	wires?: string[];
	/** Whether the claim field stays in the items. As a rule only item linking may lead to the claim. */
	keepClaim?: boolean;
	complete?: Record<string, unknown>;
	settings?: Record<string, unknown>;
}

interface Started {
	workflow: SavedWorkflow;
	source: string;
	deliveryIds: string[];
}

/** Publishes a workflow and sends it one webhook call with three deliveries. */
async function start({ between, wires, keepClaim = false, complete = {}, settings }: Between): Promise<Started> {
	const source = `upstream-${randomUUID().slice(0, 8)}`;
	const deliveryIds = ['a', 'b', 'c'].map((letter) => `${source}-${letter}`);
	const reference = '=lead-of-{{ $json.id }}';
	const claimed = keepClaim
		? node('set', 3.4, { mode: 'manual', includeOtherFields: true, assignments: { assignments: [{ id: randomUUID(), name: 'reference', value: reference, type: 'string' }] }, options: {} }, 'Claimed')
		: onlyFields({ id: '={{ $json.id }}', reference }, 'Claimed');
	const chain = ['Claimed', ...between.map(({ name }) => name), 'Complete Claim'];
	const workflow = await n8n.publish({
		name: source,
		nodes: [
			webhook(source),
			node('splitOut', 1, { fieldToSplitOut: 'body.deliveries', options: {} }),
			idempotentClaim({ source }),
			claimed,
			...between,
			completeClaim({ outcomeReference: '={{ $json.reference }}', ...complete }),
			node('noOp', 1, {}, 'On Operational Error'),
		],
		wires: [
			'Webhook > splitOut',
			'splitOut > Idempotent Claim',
			'Idempotent Claim > Claimed',
			...(wires ?? chain.slice(1).map((name, place) => `${chain[place]} > ${name}`)),
			// Unconnected, it would fail the execution, and there would be no item to look at.
			'Complete Claim:2 > On Operational Error',
		],
		settings,
	});
	const { status, text } = await callWebhook(source, { deliveries: deliveryIds.map((id) => ({ id })) });
	if (status !== 200) throw new Error(`${source} answered ${status}: ${text}`);
	return { workflow, source, deliveryIds };
}

async function run(what: Between): Promise<Started & { execution: Execution; rows: ClaimRow[] }> {
	const started = await start(what);
	const execution = await n8n.onlyExecution(started.workflow);
	return { ...started, execution, rows: await claims.rows(started.source) };
}

/** Every claim is completed, and with the reference that belongs to its own delivery. */
function expectEachItsOwn(rows: ClaimRow[], deliveryIds: string[]): void {
	expect(rows.map(({ deliveryId, state, reference }) => ({ deliveryId, state, reference }))).toEqual(
		deliveryIds.map((id) => ({ deliveryId: id, state: 'completed', reference: `lead-of-${id}` })),
	);
}

/** Nothing was settled, and each of `count` items says how to mend the workflow. */
function expectRefused(execution: Execution, rows: ClaimRow[], count: number): void {
	const errors = itemsOf(execution, 'Complete Claim', OPERATIONAL_ERROR).map(({ claim }) => (claim as { error: { kind: string } }).error.kind);
	expect(errors).toEqual(Array(count).fill('invalid_setting'));
	expect(itemsOf(execution, 'Complete Claim', RECORDED)).toEqual([]);
	expect(rows.map(({ state, reference }) => ({ state, reference }))).toEqual(Array(3).fill({ state: 'processing', reference: null }));
}

const isB = { leftValue: '={{ $json.id }}', rightValue: '-b', operator: { type: 'string', operation: 'endsWith' } };
const conditions = { options: { caseSensitive: true, leftValue: '', typeValidation: 'strict', version: 2 }, conditions: [{ id: randomUUID(), ...isB }], combinator: 'and' };

describe('Complete Claim finds the claim of each item behind', () => {
	const cases: Record<string, Between> = {
		'Edit Fields without the other fields': { between: [] },
		'If, whose two outputs change the items\' places': {
			between: [node('if', 2.2, { conditions, options: {} })],
			wires: ['Claimed > if', 'if > Complete Claim', 'if:1 > Complete Claim'],
		},
		'Switch, whose outputs change the items\' places': {
			between: [node('switch', 3.2, { rules: { values: [{ conditions }] }, options: { fallbackOutput: 'extra' } })],
			wires: ['Claimed > switch', 'switch > Complete Claim', 'switch:1 > Complete Claim'],
		},
		'Merge by position': {
			between: [onlyFields({ more: 'yes' }, 'Other Branch'), node('merge', 3.2, { mode: 'combine', combineBy: 'combineByPosition', options: {} })],
			wires: ['Claimed > merge', 'Claimed > Other Branch', 'Other Branch > merge@1', 'merge > Complete Claim'],
		},
		'Sort, which turns the order round': {
			between: [node('sort', 1, { sortFieldsUi: { sortField: [{ fieldName: 'id', order: 'descending' }] }, options: {} })],
		},
		'Loop Over Items, with Complete Claim inside the loop': {
			between: [node('splitInBatches', 3, { batchSize: 1, options: {} }), node('noOp', 1, {}, 'Done')],
			wires: ['Claimed > splitInBatches', 'splitInBatches > Done', 'splitInBatches:1 > Complete Claim', 'Complete Claim > splitInBatches'],
		},
		'Loop Over Items, with Complete Claim behind the loop': {
			between: [node('splitInBatches', 3, { batchSize: 2, options: {} }), onlyFields({ reference: '={{ $json.reference }}' }, 'In The Loop')],
			wires: ['Claimed > splitInBatches', 'splitInBatches:1 > In The Loop', 'In The Loop > splitInBatches', 'splitInBatches > Complete Claim'],
		},
		'Split Out, with several items for each claim': {
			between: [
				node('set', 3.4, { mode: 'raw', jsonOutput: '={{ { reference: $json.reference, parts: [1, 2] } }}', includeOtherFields: false, options: {} }, 'With Parts'),
				node('splitOut', 1, { fieldToSplitOut: 'parts', include: 'selectedOtherFields', fieldsToInclude: 'reference', options: {} }, 'Parts'),
			],
		},
		'Code that runs per item': {
			between: [node('code', 2, { mode: 'runOnceForEachItem', jsCode: 'return { json: { reference: $json.reference } };' })],
		},
		'Code for all items that returns `claim` with each, in another order': {
			keepClaim: true,
			between: [node('code', 2, { jsCode: 'return $input.all().reverse().map(({ json }) => ({ json: { reference: json.reference, claim: json.claim } }));' })],
		},
		'Code for all items that returns pairedItem as a number, in another order': {
			between: [node('code', 2, { jsCode: 'return $input.all().map(({ json }, i) => ({ json: { reference: json.reference }, pairedItem: i })).reverse();' })],
		},
	};

	test.each(Object.entries(cases))('%s', async (_title, what) => {
		const { execution, rows, deliveryIds } = await run(what);
		expect(execution.errorMessage).toBeUndefined();
		expectEachItsOwn(rows, deliveryIds);
		expect(itemsOf(execution, 'Complete Claim', OPERATIONAL_ERROR)).toEqual([]);
	});

	test('HTTP Request, whose answer takes the item\'s place', async () => {
		const { destinationUrl } = sandboxAddress();
		const jsonBody = '={{ JSON.stringify({ deliveryId: $json.id, email: "lead@example.com", name: "Example Lead" }) }}';
		const { rows, deliveryIds } = await run({
			between: [node('httpRequest', 4.2, { method: 'POST', url: `${destinationUrl}/leads`, sendBody: true, specifyBody: 'json', jsonBody, options: {} })],
			complete: { outcomeReference: '={{ $json.id }}' },
		});
		const destination = new DestinationClient(destinationUrl);
		const leadIds = await Promise.all(deliveryIds.map(async (deliveryId) => (await destination.leads({ deliveryId })).map(({ id }) => id)));
		expect(leadIds.map(({ length }) => length)).toEqual([1, 1, 1]);
		expect(rows.map(({ state, reference }) => ({ state, reference }))).toEqual(leadIds.map(([reference]) => ({ state: 'completed', reference })));
	});

	test('Execute Sub-workflow, which gives back other fields', async () => {
		const subWorkflow = await n8n.publish({
			name: 'Sub-workflow in between',
			nodes: [calledWorkflow(), onlyFields({ reference: '={{ $json.reference }}' })],
			wires: ['Called > Edit Fields'],
		});
		const { rows, deliveryIds } = await run({ between: [callWorkflow(subWorkflow)] });
		expectEachItsOwn(rows, deliveryIds);
	});

	test(`Wait for ${WAIT_SECONDS} s, where the execution is stored and loaded again`, async () => {
		const { workflow, source, deliveryIds } = longWait;
		const execution = await n8n.onlyExecution(workflow, 150);
		expect(execution.status).toBe('success');
		expectEachItsOwn(await claims.rows(source), deliveryIds);
	});
});

describe('Complete Claim refuses, and settles nothing, where the claim cannot be told', () => {
	test('Code for all items that returns new objects in another order, without pairing', async () => {
		const { execution, rows } = await run({
			between: [node('code', 2, { jsCode: 'return $input.all().reverse().map(({ json }) => ({ json: { reference: json.reference } }));' })],
		});
		expectRefused(execution, rows, 3);
	});

	test('Code for all items that makes one item of several claims', async () => {
		const { execution, rows } = await run({
			between: [node('code', 2, { jsCode: 'return [{ json: { reference: $input.first().json.reference } }];' })],
		});
		expectRefused(execution, rows, 1);
	});

	test('Aggregate, which makes one item of several claims', async () => {
		const { execution, rows } = await run({
			between: [node('aggregate', 1, { fieldsToAggregate: { fieldToAggregate: [{ fieldToAggregate: 'reference' }] }, options: {} })],
			complete: { outcomeReference: '={{ $json.reference[0] }}' },
		});
		expectRefused(execution, rows, 1);
	});
});

// A limit, said in the README: n8n hands on the sub-workflow's own pairing, and the engine guessed that by position.
test.failing('A Code node inside a sub-workflow, without pairing: whatever is settled, it is never the wrong claim', async () => {
	const subWorkflow = await n8n.publish({
		name: 'Sub-workflow that turns the order round',
		nodes: [calledWorkflow(), node('code', 2, { jsCode: 'return $input.all().reverse().map(({ json }) => ({ json: { reference: json.reference } }));' })],
		wires: ['Called > code'],
	});
	const { rows } = await run({ between: [callWorkflow(subWorkflow)] });
	expect(rows.filter(({ deliveryId, reference }) => reference !== null && reference !== `lead-of-${deliveryId}`)).toEqual([]);
});

describe('Complete Claim in another workflow', () => {
	test('in a sub-workflow, by the handle', async () => {
		const subWorkflow = await n8n.publish({
			name: 'Sub-workflow that completes',
			nodes: [calledWorkflow(), completeClaim({ claimFrom: 'handle', handle: '={{ $json.claim.handle }}', outcomeReference: '={{ $json.reference }}' })],
			wires: ['Called > Complete Claim'],
		});
		const { execution, rows, deliveryIds } = await run({ keepClaim: true, between: [callWorkflow(subWorkflow)] });
		expectEachItsOwn(rows, deliveryIds);
		// Behind the sub-workflow stands the caller's own Complete Claim: the same once more, and nothing new.
		expect(itemsOf(execution, 'Complete Claim', RECORDED)).toHaveLength(3);
	});

	test('in an error workflow, by the failed execution', async () => {
		const errorWorkflow = await n8n.publish({
			name: 'Error workflow',
			nodes: [
				node('errorTrigger', 1, {}, 'Error Trigger'),
				completeClaim({ claimFrom: 'execution', executionId: '={{ $json.execution.id }}', outcome: 'outcomeUncertain', reason: '={{ $json.execution.error.message }}' }),
			],
			wires: ['Error Trigger > Complete Claim'],
		});
		const { execution, source } = await run({
			between: [node('stopAndError', 1, { errorType: 'errorMessage', errorMessage: 'The CRM is on fire' })],
			settings: { errorWorkflow: errorWorkflow.id },
		});
		expect(execution.status).toBe('error');
		const recorded = await n8n.onlyExecution(errorWorkflow);
		expect(itemsOf(recorded, 'Complete Claim', RECORDED)).toHaveLength(3);
		const rows = await claims.rows(source);
		expect(rows.map(({ state, reason }) => ({ state, reason }))).toEqual(Array(3).fill({ state: 'outcome_uncertain', reason: 'The CRM is on fire' }));
	});
});

function calledWorkflow(): PlannedNode {
	return node('executeWorkflowTrigger', 1.1, { inputSource: 'passthrough' }, 'Called');
}

function callWorkflow({ id }: SavedWorkflow): PlannedNode {
	return node('executeWorkflow', 1.2, { workflowId: { __rl: true, mode: 'id', value: id }, workflowInputs: { mappingMode: 'defineBelow', value: {} }, options: { waitForSubWorkflow: true } }, 'Execute Sub-workflow');
}
