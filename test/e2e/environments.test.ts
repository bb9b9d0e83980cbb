import { randomUUID } from 'node:crypto';
import { sandboxAddress } from './support/address';
import { ClaimTable } from './support/claimTable';
import { itemsOf, N8n, type Execution } from './support/n8n';
import { callWebhook } from './support/webhookCall';
import { completeClaim, idempotentClaim, node, onlyFields, webhook, type WorkflowPlan } from './support/workflow';

const NEW_CLAIM = 0;
const KNOWN_DUPLICATE = 1;

let n8n: N8n;
let claims: ClaimTable;

beforeAll(async () => {
	n8n = new N8n();
	claims = new ClaimTable();
});

afterAll(async () => {
	await claims.close();
});

interface Setup {
	plan: WorkflowPlan;
	source: string;
	deliveryId: string;
}

/** Webhook, Idempotent Claim, Complete Claim; with one delivery pinned to the Webhook, as the editor's "copy to editor" leaves it. */
function setUp(options: Record<string, unknown> = {}, pinned = true): Setup {
	const source = `environment-${randomUUID().slice(0, 8)}`;
	const deliveryId = `evt-${source}`;
	const plan: WorkflowPlan = {
		name: source,
		nodes: [webhook(source), idempotentClaim({ source, deliveryId: '={{ $json.body.id }}', options }), completeClaim({ outcomeReference: '=done-in-{{ $json.claim.environment }}' })],
		wires: ['Webhook > Idempotent Claim', 'Idempotent Claim > Complete Claim'],
		...(pinned && { pinData: { Webhook: [{ json: { headers: {}, params: {}, query: {}, body: { id: deliveryId } } }] } }),
	};
	return { plan, source, deliveryId };
}

async function deliver(address: 'webhook' | 'webhook-test', { source, deliveryId }: Setup): Promise<void> {
	expect((await callWebhook(`${sandboxAddress().n8nUrl}/${address}/${source}`, { id: deliveryId })).status).toBe(200);
}

async function manualRun(workflow: { id: string; versionId: string }, trigger: string): Promise<Execution> {
	const { executionId } = await n8n.runManually(workflow, trigger);
	if (!executionId) throw new Error('n8n waits for a webhook call instead of running');
	return await n8n.finishedExecution(executionId);
}

function claimFields(execution: Execution, output: number): Array<Record<string, unknown>> {
	return itemsOf(execution, 'Idempotent Claim', output).map(({ claim }) => claim as Record<string, unknown>);
}

async function environmentsIn(source: string): Promise<string[]> {
	return (await claims.rows(source)).map(({ environment, state, reference }) => `${environment}: ${state}, ${reference}`);
}

test('A production delivery is live; the same one run from the editor is its known duplicate', async () => {
	const setup = setUp();
	const workflow = await n8n.publish(setup.plan);
	await deliver('webhook', setup);
	await n8n.onlyExecution(workflow);
	expect(await environmentsIn(setup.source)).toEqual(['live: completed, done-in-live']);

	const manual = await manualRun(workflow, 'Webhook');
	expect(manual.mode).toBe('manual');
	expect(claimFields(manual, NEW_CLAIM)).toEqual([]);
	expect(claimFields(manual, KNOWN_DUPLICATE)).toMatchObject([{ reason: 'completed', environment: 'live', outcome: { reference: 'done-in-live' } }]);
	expect(await environmentsIn(setup.source)).toEqual(['live: completed, done-in-live']);
});

test('A new delivery run from the editor claims in test, and leaves the live one to come', async () => {
	const setup = setUp();
	const workflow = await n8n.publish(setup.plan);
	expect(claimFields(await manualRun(workflow, 'Webhook'), NEW_CLAIM)).toMatchObject([{ environment: 'test', reason: 'first_delivery' }]);
	expect(await environmentsIn(setup.source)).toEqual(['test: completed, done-in-test']);

	const again = await manualRun(workflow, 'Webhook');
	expect(claimFields(again, KNOWN_DUPLICATE)).toMatchObject([{ environment: 'test', reason: 'completed' }]);

	const before = await n8n.executionIds(workflow);
	await deliver('webhook', setup);
	const [id] = (await n8n.executionIds(workflow)).filter((one) => !before.includes(one));
	expect(claimFields(await n8n.finishedExecution(id), NEW_CLAIM)).toMatchObject([{ environment: 'live', reason: 'first_delivery' }]);
	expect(await environmentsIn(setup.source)).toEqual(['live: completed, done-in-live', 'test: completed, done-in-test']);
});

test('Always New takes a test claim anew at each run from the editor', async () => {
	const setup = setUp({ manualExecutions: 'alwaysNew' });
	const workflow = await n8n.create(setup.plan);
	for (let run = 1; run <= 2; run++) {
		expect(claimFields(await manualRun(workflow, 'Webhook'), NEW_CLAIM)).toMatchObject([{ environment: 'test' }]);
	}
	expect(await environmentsIn(setup.source)).toEqual(['test: completed, done-in-test']);
});

test('Manual Executions "Live" lets a run from the editor use up the real delivery', async () => {
	const setup = setUp({ manualExecutions: 'live' });
	const workflow = await n8n.create(setup.plan);
	await manualRun(workflow, 'Webhook');
	expect(await environmentsIn(setup.source)).toEqual(['live: completed, done-in-live']);
});

test('A delivery to the test URL claims in test', async () => {
	const setup = setUp({}, false);
	const workflow = await n8n.create(setup.plan);
	expect(await n8n.runManually(workflow, 'Webhook')).toMatchObject({ waitingForWebhook: true });
	await deliver('webhook-test', setup);
	const execution = await n8n.onlyExecution(workflow);
	expect(claimFields(execution, NEW_CLAIM)).toMatchObject([{ environment: 'test' }]);
	expect(await environmentsIn(setup.source)).toEqual(['test: completed, done-in-test']);
});

test('A sub-workflow claims where its caller runs: test from the editor, live in production', async () => {
	const { source, deliveryId } = setUp();
	const called = await n8n.publish({
		name: `${source}, called`,
		nodes: [node('executeWorkflowTrigger', 1.1, { inputSource: 'passthrough' }, 'Called'), idempotentClaim({ source }), completeClaim({ outcomeReference: '=done-in-{{ $json.claim.environment }}' })],
		wires: ['Called > Idempotent Claim', 'Idempotent Claim > Complete Claim'],
	});
	const callIt = node('executeWorkflow', 1.2, { workflowId: { __rl: true, mode: 'id', value: called.id }, workflowInputs: { mappingMode: 'defineBelow', value: {} }, options: {} });
	const caller = await n8n.publish({
		name: `${source}, caller`,
		nodes: [node('manualTrigger', 1, {}, 'Manual Trigger'), webhook(source, 'lastNode'), onlyFields({ id: deliveryId }), callIt],
		wires: ['Manual Trigger > Edit Fields', 'Webhook > Edit Fields', 'Edit Fields > executeWorkflow'],
	});

	const manual = await manualRun(caller, 'Manual Trigger');
	expect(manual.status).toBe('success');
	expect(await environmentsIn(source)).toEqual(['test: completed, done-in-test']);

	await deliver('webhook', { source, deliveryId } as Setup);
	expect(await environmentsIn(source)).toEqual(['live: completed, done-in-live', 'test: completed, done-in-test']);
});
