import { randomUUID } from 'node:crypto';
import { idempotencyKey } from '../../store/identity';
import { newEvent, signed, type LeadEvent } from '../../sandbox/sender';
import { sandboxAddress } from './support/address';
import { AWAY, createClaimStore } from './support/claimStore';
import { ClaimTable } from './support/claimTable';
import { createCopy } from './support/exampleCopy';
import { LeadEvents } from './support/leadEvents';
import { itemsOf, N8n, type Execution, type SavedWorkflow } from './support/n8n';
import { until } from './support/until';
import { callWebhook } from './support/webhookCall';
import { claimRecoveryTrigger, completeClaim, idempotentClaim, node, webhook, type WorkflowPlan } from './support/workflow';

/**
 * The example workflows durable-inbox, reconcile-before-retry and failed-executions, together with guarded-webhook, as they are imported.
 * What n8n's death leaves behind is in `killed.inbox.test.ts`.
 */

const { workflows, destinationUrl } = sandboxAddress();
const SECONDS_TO_RECOVER = 120;
const aLeadId = expect.stringMatching(/^\d+$/) as string;
const oneLead = [aLeadId];
const ERRORS_ARE_HANDLED = { errorWorkflow: workflows['failed-executions'].id };

let n8n: N8n;
let events: LeadEvents;
let claims: ClaimTable;
/** The destination takes its request, and neither acts nor answers. The time-out of a minute passes while the other tests run. */
const hanging = newEvent();

beforeAll(async () => {
	n8n = new N8n();
	events = new LeadEvents();
	claims = new ClaimTable();
	await events.destination.behave('hang');
	expect(await events.send('durable-inbox', hanging)).toBe(200);
	await until('the request hangs', SECONDS_TO_RECOVER, async () => (await events.destination.calls(hanging.lead.email)) === 1);
	await events.destination.behave('work');
});

const published: SavedWorkflow[] = [];
/** The destination's behaviour is everybody's, and workflows that poll go on. */
afterEach(async () => {
	await events.destination.behave('work');
	for (const workflow of published.splice(0)) await n8n.deactivate(workflow);
});
afterAll(async () => {
	await events.close();
	await claims.close();
});

/** Of an event that became one lead: the record names that lead. */
async function expectOneLead(event: LeadEvent, attempt = 1): Promise<void> {
	await events.whenIn('completed', event);
	const found = await events.found(event);
	expect(found).toEqual({ state: 'completed', attempt, reference: found.leads[0], reason: null, leads: oneLead });
}

describe('durable-inbox', () => {
	test('a delivery is answered when it is stored, and becomes one lead; five copies at once and one that comes later change nothing', async () => {
		const event = newEvent();
		expect(await Promise.all(Array.from({ length: 5 }, async () => await events.send('durable-inbox', event)))).toEqual([200, 200, 200, 200, 200]);
		await expectOneLead(event);
		expect(await events.send('durable-inbox', event)).toBe(200);
		await expectOneLead(event);
		expect(await events.story(event)).toEqual(['received (first_delivery)', 'processing (received)', 'completed']);
		expect(await events.destination.calls(event.lead.email)).toBe(1);
	});

	test('without an ID: 400, and nothing is stored or done', async () => {
		const { id, ...withoutId } = newEvent();
		expect(await events.send('durable-inbox', withoutId)).toBe(400);
		expect(await events.isStored({ id, ...withoutId })).toBe(false);
		expect(await events.destination.calls(withoutId.lead.email)).toBe(0);
	});

	test('the destination refuses: the sender hears nothing of it, and the lead is made when the retry is due', async () => {
		const event = newEvent();
		await events.destination.behave('refuse');
		expect(await events.send('durable-inbox', event)).toBe(200);
		await events.whenIn('retryable_failure', event);
		expect(await events.found(event)).toMatchObject({ attempt: 1, leads: [], reason: expect.stringContaining('Closed for maintenance') as string });
		expect(await events.send('durable-inbox', event)).toBe(200);

		await events.destination.behave('work');
		await events.retryIsDue(event);
		await expectOneLead(event, 2);
		const refused = expect.stringMatching(/^retryable_failure \(503/) as string;
		expect(await events.story(event)).toEqual(['received (first_delivery)', 'processing (received)', refused, 'processing (retry)', 'completed']);
	});

	test('the answer is lost: the lead is looked up, and not made again', async () => {
		const event = newEvent();
		await events.destination.behave('loseAnswer');
		expect(await events.send('durable-inbox', event)).toBe(200);
		await expectOneLead(event);
		expect(await events.story(event)).toEqual([
			'received (first_delivery)',
			'processing (received)',
			'outcome_uncertain (socket hang up)',
			'outcome_uncertain (reconciliation)',
			'completed',
		]);
		expect(await events.destination.calls(event.lead.email)).toBe(1);
	});
});

describe('guarded-webhook', () => {
	test('a delivery that the sender did not sign is refused, and uses up no ID', async () => {
		const event = newEvent();
		const forge = async (signature?: string) => await callWebhook(workflows['guarded-webhook'].webhookUrl, event, signature === undefined ? {} : { 'x-signature-256': signature });
		const ofAnotherEvent = signed(newEvent()).headers['x-signature-256'];
		for (const signature of [undefined, '', 'sha256=', ofAnotherEvent, signed(event).headers['x-signature-256'].toUpperCase()]) {
			expect([signature, await forge(signature)]).toEqual([signature, { status: 401, text: '' }]);
		}
		expect(await events.found(event)).toMatchObject({ state: undefined, leads: [] });

		expect(await events.send('guarded-webhook', event)).toBe(200);
		await expectOneLead(event);
	});
});

describe('guarded-webhook with reconcile-before-retry', () => {
	test('the answer is lost: the lead is looked up, and not made again; a copy is a known duplicate all the time', async () => {
		const event = newEvent();
		await events.destination.behave('loseAnswer');
		expect([await events.send('guarded-webhook', event), await events.send('guarded-webhook', event)]).toEqual([200, 200]);
		await expectOneLead(event);
		expect(await events.send('guarded-webhook', event)).toBe(200);
		await expectOneLead(event);
		expect(await events.story(event)).toEqual(['processing (first_delivery)', 'outcome_uncertain (socket hang up)', 'outcome_uncertain (reconciliation)', 'completed']);
		expect(await events.destination.calls(event.lead.email)).toBe(1);
	});

	test('the destination refuses: the sender is asked to come again, and the lead is made even if it does not', async () => {
		const event = newEvent();
		await events.destination.behave('refuse');
		expect(await events.send('guarded-webhook', event)).toBe(503);
		await events.destination.behave('work');
		await events.retryIsDue(event);
		await expectOneLead(event, 2);
		expect(await events.send('guarded-webhook', event)).toBe(200);
		await expectOneLead(event, 2);
	});

	test('the look-up finds two leads: a person must decide, and reads their IDs', async () => {
		const event = newEvent();
		const key = idempotencyKey({ environment: 'live', source: 'example-crm', account: '', action: 'create-lead', deliveryId: event.id });
		const response = await fetch(`${destinationUrl}/leads`, { method: 'POST', headers: { 'idempotency-key': key }, body: JSON.stringify({ deliveryId: event.id, ...event.lead }) });
		expect(response.status).toBe(201);
		await events.destination.behave('loseAnswer');
		expect(await events.send('guarded-webhook', event)).toBe(200);
		await events.whenIn('needs_review', event);
		const { leads, reason } = await events.found(event);
		expect(leads).toHaveLength(2);
		expect(reason).toBe(`The look-up is not clear: 2 found, with the IDs ${leads.join(', ')}`);
	});
});

describe('reconcile-before-retry, where the look-up cannot tell', () => {
	test.each([
		['fails, also when it is tried again', { url: `${destinationUrl}/nowhere` }, /^The look-up failed: .*No such address/],
		['finds the lead of somebody else, because the destination does not know the question', { url: `${destinationUrl}/leads?email=:hers`, sendQuery: false }, /^The look-up is not clear: 1 found, with the IDs \d+$/],
		['is answered with something else than a list', { url: `${destinationUrl}/calls?email=:hers`, sendQuery: false }, /^The look-up is not clear: the answer is no list$/],
	])('it %s: a person must decide, and reads why', async (_case, lookUp, reason) => {
		const source = `unclear-${randomUUID()}`;
		const hers = newEvent();
		expect(await events.send('durable-inbox', hers)).toBe(200);
		await events.whenIn('completed', hers);

		const parameters = { 'Claim Recovery Trigger': { source, action: 'e2e' }, 'Look Up Lead': { ...lookUp, url: lookUp.url.replace(':hers', hers.lead.email) } };
		await activate(await createCopy(n8n, 'reconcile-before-retry', source, { parameters, ...ERRORS_ARE_HANDLED }));
		await publish(failsAfterItsClaim(source));
		await deliverTo(source);
		await until('a person must decide', SECONDS_TO_RECOVER, async () => (await claims.rows(source)).some(({ state }) => state === 'needs_review'));
		expect(await claims.rows(source)).toMatchObject([{ attempt: 1, reference: null, reason: expect.stringMatching(reason) as string }]);
	});
});

describe('failed-executions', () => {
	test('an execution that fails after its claim: uncertain within seconds, and the reason names the node and its error', async () => {
		const source = `failed-${randomUUID()}`;
		const workflow = await publish(failsAfterItsClaim(source));
		await deliverTo(source);
		const execution = await n8n.onlyExecution(workflow);
		expect(execution.status).toBe('error');
		await until('the claim is uncertain', SECONDS_TO_RECOVER, async () => (await claims.rows(source)).every(({ state }) => state === 'outcome_uncertain'));
		const reason = expect.stringMatching(new RegExp(`^Execution ${execution.id} failed at "Enrich": The CRM is on fire`)) as string;
		expect(await claims.rows(source)).toMatchObject([{ state: 'outcome_uncertain', attempt: 1, reason }]);
		expect(itemsOf(await errorRunOf(workflow), 'Record Uncertain Outcome', 0)).toHaveLength(1);
	});

	test('an execution that fails after its outcome: the outcome stays', async () => {
		const source = `failed-${randomUUID()}`;
		const plan = failsAfterItsClaim(source);
		const workflow = await publish({
			...plan,
			nodes: [...plan.nodes, completeClaim({ outcomeReference: 'lead-1' })],
			wires: ['Webhook > Idempotent Claim', 'Idempotent Claim > Complete Claim', 'Complete Claim > Enrich'],
		});
		await deliverTo(source);
		const run = await errorRunOf(workflow);
		expect([run.status, itemsOf(run, 'Has an Execution?', 0).length, itemsOf(run, 'Record Uncertain Outcome', 0)]).toEqual(['success', 1, []]);
		expect(await claims.rows(source)).toMatchObject([{ state: 'completed', reference: 'lead-1' }]);
	});

	test('a trigger that fails, without an execution: the error workflow ends well', async () => {
		const { credential } = await createClaimStore(n8n, 'away', AWAY);
		const polling = { ...claimRecoveryTrigger({ source: `failed-${randomUUID()}` }), extra: { credentials: { claimStoreApi: credential } } };
		const run = await errorRunOf(await publish({ name: 'Recovery without a store', nodes: [polling], wires: [], settings: ERRORS_ARE_HANDLED }));
		expect([run.status, itemsOf(run, 'Nothing Was Claimed', 0).length, run.runData['Record Uncertain Outcome']]).toEqual(['success', 1, undefined]);
	});
});

test('a request that was never answered: after its time-out it is looked up, not found, and done again', async () => {
	await expectOneLead(hanging, 2);
	expect(await events.story(hanging)).toEqual([
		'received (first_delivery)',
		'processing (received)',
		expect.stringMatching(/^outcome_uncertain \(.*timeout/),
		'outcome_uncertain (reconciliation)',
		'retryable_failure (Looked up at the destination: not there)',
		'processing (retry)',
		'completed',
	]);
	expect(await events.destination.calls(hanging.lead.email)).toBe(2);
});

/** Webhook → claim → a step that fails. */
function failsAfterItsClaim(source: string): WorkflowPlan {
	return {
		name: `Fails after its claim: ${source}`,
		nodes: [webhook(source), idempotentClaim({ source, deliveryId: '={{ $json.body.id }}' }), node('code', 2, { jsCode: `throw new Error('The CRM is on fire');` }, 'Enrich')],
		wires: ['Webhook > Idempotent Claim', 'Idempotent Claim > Enrich'],
		settings: ERRORS_ARE_HANDLED,
	};
}

async function publish(plan: WorkflowPlan): Promise<SavedWorkflow> {
	return await activate(await n8n.create(plan));
}

async function activate(workflow: SavedWorkflow): Promise<SavedWorkflow> {
	await n8n.activate(workflow);
	published.push(workflow);
	return workflow;
}

async function deliverTo(webhookPath: string): Promise<void> {
	expect((await callWebhook(webhookPath, newEvent())).status).toBe(200);
}

/** The run of failed-executions that a failure of this workflow has started. */
async function errorRunOf({ id }: SavedWorkflow): Promise<Execution> {
	let found: Execution | undefined;
	await until('failed-executions has heard of it', SECONDS_TO_RECOVER, async () => {
		for (const executionId of await n8n.executionIds(workflows['failed-executions'])) {
			const run = await n8n.finishedExecution(executionId);
			const [heardOf] = itemsOf(run, 'Error Trigger', 0) as Array<{ workflow: { id: string } }>;
			if (heardOf?.workflow.id === id) found = run;
		}
		return found !== undefined;
	});
	return found as Execution;
}
