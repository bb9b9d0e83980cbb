import { randomUUID } from 'node:crypto';
import { LEASE_OVER } from '../support/timePassed';
import { AWAY, createClaimStore } from './support/claimStore';
import { ClaimTable } from './support/claimTable';
import { itemsOf, N8n, type Execution, type SavedWorkflow } from './support/n8n';
import { until } from './support/until';
import { callWebhook } from './support/webhookCall';
import { claimRecoveryTrigger, completeClaim, idempotentClaim, node, onlyFields, webhook, type PlannedNode } from './support/workflow';

/** Claims that nobody finished start workflows of a real n8n, at its own poll times. */

const READY_TO_RUN = 0;
const RECONCILE_FIRST = 1;
const SECONDS_TO_RECOVER = 60;

let n8n: N8n;
let claims: ClaimTable;
let inbox: SavedWorkflow;

beforeAll(async () => {
	n8n = new N8n();
	claims = new ClaimTable();
	inbox = await n8n.publish({
		name: 'Inbox',
		nodes: [
			webhook('recovery-inbox', 'lastNode'),
			node('splitOut', 1, { fieldToSplitOut: 'body.deliveries', options: {} }),
			idempotentClaim({ operation: 'receive', source: '={{ $json.source }}', options: { maxAttempts: 2 } }),
		],
		wires: ['Webhook > splitOut', 'splitOut > Idempotent Claim'],
	});
});

afterAll(async () => {
	await n8n.deactivate(inbox);
	await claims.close();
});

/** Workflows that poll go on for as long as they are published. */
const published: SavedWorkflow[] = [];
afterEach(async () => {
	for (const workflow of published.splice(0)) await n8n.deactivate(workflow);
});

/** Publishes Trigger → the given nodes in a row. */
async function recover(source: string, row: PlannedNode[], more: { nodes?: PlannedNode[]; wires?: string[]; trigger?: Record<string, unknown> } = {}): Promise<SavedWorkflow> {
	const nodes = [claimRecoveryTrigger({ source, ...more.trigger }), ...row];
	const workflow = await n8n.publish({
		name: `Recovery of ${source}`,
		nodes: [...nodes, ...(more.nodes ?? [])],
		wires: [...row.map(({ name }, place) => `${nodes[place].name} > ${name}`), ...(more.wires ?? [])],
	});
	published.push(workflow);
	return workflow;
}

const newSource = () => `recovery-${randomUUID().slice(0, 8)}`;

/** Stores so many deliveries in the inbox. */
async function deliver(source: string, count: number): Promise<string[]> {
	const deliveries = Array.from({ length: count }, (_, index) => ({ source, id: `${source}-${String(index).padStart(2, '0')}` }));
	expect((await callWebhook('recovery-inbox', { deliveries })).status).toBe(200);
	return deliveries.map(({ id }) => id);
}

async function whenAll(source: string, state: string): Promise<void> {
	await until(`all claims of ${source} are ${state}`, SECONDS_TO_RECOVER, async () => (await claims.rows(source)).every((row) => row.state === state));
}

/** All executions that a workflow has had, ended, oldest first. */
async function executionsOf(workflow: SavedWorkflow): Promise<Execution[]> {
	const ids = (await n8n.executionIds(workflow)).sort((one, other) => Number(one) - Number(other));
	return await Promise.all(ids.map(async (id) => await n8n.finishedExecution(id)));
}

const trigger = (execution: Execution, output: number) => itemsOf(execution, 'Claim Recovery Trigger', output).map(({ claim }) => claim as Record<string, unknown>);

test('stored deliveries are worked off, each in an execution of its own: those that were there, and those that come', async () => {
	const source = newSource();
	const before = await deliver(source, 3);
	const workflow = await recover(source, [
		completeClaim({ outcome: 'extendLease' }, 'Still Mine'),
		onlyFields({ reference: '=lead-of-{{ $json.id }}' }),
		completeClaim({ outcomeReference: '={{ $json.reference }}' }),
	]);
	await whenAll(source, 'completed');
	expect((await claims.rows(source)).map(({ reference }) => reference)).toEqual(before.map((id) => `lead-of-${id}`));

	await claims.change(source, `source = '${source}-done'`);
	await deliver(source, 2);
	await whenAll(source, 'completed');
	const executions = await executionsOf(workflow);
	expect(executions.map(({ mode, status }) => `${mode} ${status}`)).toEqual(Array(5).fill('trigger success'));
	expect(executions.map((execution) => trigger(execution, READY_TO_RUN))).toEqual(Array(5).fill([expect.objectContaining({ reason: 'received', attempt: 1, version: 2 })]));
});

test('an execution that fails leaves its claim; when the lease is over it is to be reconciled first', async () => {
	const source = newSource();
	await deliver(source, 1);
	const workflow = await recover(source, [node('stopAndError', 1, { errorType: 'errorMessage', errorMessage: 'The CRM is on fire' })], {
		nodes: [completeClaim({ outcome: 'needsReview', reason: 'the CRM cannot tell' })],
		wires: ['Claim Recovery Trigger:1 > Complete Claim'],
	});
	const failed = await n8n.onlyExecution(workflow, SECONDS_TO_RECOVER);
	expect([failed.status, trigger(failed, READY_TO_RUN).length]).toEqual(['error', 1]);
	expect(await claims.rows(source)).toMatchObject([{ state: 'processing', attempt: 1 }]);

	await claims.change(source, LEASE_OVER);
	await whenAll(source, 'needs_review');
	const [, reconciled] = await executionsOf(workflow);
	expect([trigger(reconciled, READY_TO_RUN), trigger(reconciled, RECONCILE_FIRST)]).toEqual([[], [expect.objectContaining({ reason: 'outcome_uncertain', version: 3, attempt: 1 })]]);
	expect(reconciled.runData.stopAndError).toBeUndefined();
	expect(await claims.rows(source)).toMatchObject([{ reason: 'the CRM cannot tell' }]);
});

test('what failed without effect is tried again until its attempts are used up; then it waits for a person', async () => {
	const source = newSource();
	await deliver(source, 1);
	const workflow = await recover(source, [completeClaim({ outcome: 'retryableFailure', retryAfterSeconds: 0, reason: 'the CRM answered 429' })]);
	await whenAll(source, 'needs_review');
	const executions = await executionsOf(workflow);
	expect(executions.flatMap((execution) => trigger(execution, READY_TO_RUN).map(({ reason, attempt }) => `${String(reason)} ${String(attempt)}`))).toEqual(['received 1', 'retry 2']);
});

test('two workflows with the same trigger share no claim', async () => {
	const source = newSource();
	const ids = await deliver(source, 40);
	const row = () => [completeClaim({ outcomeReference: '={{ $workflow.id }}' })];
	const workflows = await Promise.all([recover(source, row(), { trigger: { limit: 10 } }), recover(source, row(), { trigger: { limit: 10 } })]);
	await whenAll(source, 'completed');
	const executions = (await Promise.all(workflows.map(executionsOf))).flat();
	expect(executions.flatMap((execution) => trigger(execution, READY_TO_RUN).map(({ deliveryId }) => deliveryId)).sort()).toEqual(ids);
	expect((await claims.rows(source)).map(({ attempt }) => attempt)).toEqual(ids.map(() => 1));
	expect(new Set((await claims.rows(source)).map(({ reference }) => reference))).toEqual(new Set(workflows.map(({ id }) => id)));
});

test('without an Action the workflow is not published, and n8n says why', async () => {
	const workflow = await n8n.create({ name: 'Recovery without an Action', nodes: [claimRecoveryTrigger({ source: newSource(), action: '={{ "" }}' })], wires: [] });
	await expect(n8n.activate(workflow)).rejects.toThrow(/n8n did not publish .*The Action is missing/);
});

test('with a claim store that is away it is published, and each poll is a failed execution that says what to do', async () => {
	const { credential } = await createClaimStore(n8n, 'away', AWAY);
	const polling = claimRecoveryTrigger({ source: newSource() });
	const workflow = await n8n.publish({ name: 'Recovery without a store', nodes: [{ ...polling, extra: { credentials: { claimStoreApi: credential } } }], wires: [] });
	published.push(workflow);
	await until('two polls have failed', SECONDS_TO_RECOVER, async () => (await n8n.executionIds(workflow)).length >= 2);
	const [{ status, mode, errorMessage }] = await executionsOf(workflow);
	expect({ status, mode, errorMessage }).toEqual({ status: 'error', mode: 'trigger', errorMessage: expect.stringContaining('No connection to PostgreSQL') as unknown });
});
