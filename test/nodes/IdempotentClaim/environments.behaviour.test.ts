import { claimNode, claimsOf, completeNode, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, Workbench } from '../../support/workbench';
import type { RunOptions } from '../../support/engine';

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const environmentsOf = async () => (await workbench.rows()).map((row) => row.environment);

test.each<[string, RunOptions, string]>([
	['a webhook', { mode: 'webhook' }, 'live'],
	['a trigger', { mode: 'trigger' }, 'live'],
	['a retry', { mode: 'retry' }, 'live'],
	['an error workflow', { mode: 'error' }, 'live'],
	['the editor', { mode: 'manual' }, 'test'],
	['an evaluation', { mode: 'evaluation' }, 'test'],
	['a sub-workflow of a webhook', { mode: 'integrated', rootExecutionMode: 'webhook' }, 'live'],
	['a sub-workflow of the editor', { mode: 'integrated', rootExecutionMode: 'manual' }, 'test'],
	['a sub-workflow of an evaluation', { mode: 'integrated', rootExecutionMode: 'evaluation' }, 'test'],
])('a run of %s claims in its environment', async (_name, options, environment) => {
	const run = await workbench.run(guarded(), { ...options, items: deliveries('d1') });
	expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ environment }]);
	expect(await environmentsOf()).toEqual([environment]);
});

test.each([
	[{ executionMode: 'test', webhookUrl: 'http://n8n.example.com/webhook-test/x' }, 'test'],
	[{ executionMode: 'production', webhookUrl: 'http://n8n.example.com/webhook/x' }, 'live'],
	// A sender's own field of that name is no Webhook item.
	[{ executionMode: 'test' }, 'live'],
])('a sub-workflow that is not told how its root runs takes an item with %j as a delivery in %s', async (json, environment) => {
	await workbench.run(guarded(), { mode: 'integrated', items: [{ json: { id: 'd1', ...json } }] });
	expect(await environmentsOf()).toEqual([environment]);
});

// An element that was split from a body is the sender's own text: it must not turn a live delivery into a test.
test.each([{ mode: 'webhook' }, { mode: 'integrated', rootExecutionMode: 'webhook' }] as const)('where n8n tells (%o), an item cannot call itself a test', async (options) => {
	await workbench.run(guarded(), { ...options, items: [{ json: { id: 'd1', executionMode: 'test', webhookUrl: 'x' } }] });
	expect(await environmentsOf()).toEqual(['live']);
});

test('a real sub-workflow call of a manual run claims in test, of a webhook in live', async () => {
	const parent = {
		nodes: { Start: { type: 'n8n-nodes-base.webhook' }, Call: { type: 'n8n-nodes-base.executeWorkflow', parameters: { workflowId: 'sub' } } },
		lines: ['Start -> Call'],
	};
	const subWorkflows = { sub: { nodes: { Called: { type: 'n8n-nodes-base.executeWorkflowTrigger' }, Claim: claimNode() }, lines: ['Called -> Claim'] } };
	const claimed = async (mode: 'manual' | 'webhook', id: string) => (await workbench.run(parent, { mode, items: deliveries(id), subWorkflows })).outputOf('Call');
	expect(await claimed('manual', 'd1')).toMatchObject([{ claim: { status: 'new', environment: 'test' } }]);
	expect(await claimed('webhook', 'd2')).toMatchObject([{ claim: { status: 'new', environment: 'live' } }]);
});

test('a test claim does not use up the delivery: the live one is new', async () => {
	await workbench.run(guarded(), { mode: 'manual', items: deliveries('d1') });
	const live = await workbench.run(guarded(), { items: deliveries('d1') });
	expect(claimsOf(live, 'Claim', NEW_CLAIM)).toMatchObject([{ environment: 'live', reason: 'first_delivery' }]);
	expect(await environmentsOf()).toEqual(['live', 'test']);
});

test('a test claim of a live identity is a Known Duplicate of it, in every state, and changes nothing', async () => {
	await workbench.run(guarded(), { items: deliveries('d1'), executionId: '7' });
	const states = {
		processing: 'in_progress',
		completed: 'completed',
		retryable_failure: 'retry_pending',
		outcome_uncertain: 'outcome_uncertain',
		needs_review: 'needs_review',
		received: 'received',
	};
	for (const [state, reason] of Object.entries(states)) {
		await workbench.change('d1', `state = '${state}', retry_at = ${state === 'retryable_failure' ? "now() - interval '1 h'" : 'NULL'}, lease_expires_at = ${state === 'processing' ? "now() - interval '1 h'" : 'NULL'}`);
		const before = await workbench.row('d1');
		const run = await workbench.run(guarded(), { mode: 'manual', items: deliveries('d1') });
		expect(claimsOf(run, 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ reason, environment: 'live', state, owner: { executionId: '7' } }]);
		expect(run.ran('Action')).toBe(false);
		expect(await workbench.row('d1')).toEqual(before);
	}
});

test('a test claim with another content than the live one is refused where Payload Mismatch says so', async () => {
	const node = claimNode({ options: { fingerprint: '={{ $json.body }}', payloadMismatch: 'operationalError' } });
	await workbench.run(guarded(node), { items: [{ json: { id: 'd1', body: 1 } }] });
	const run = await workbench.run(guarded(node), { mode: 'manual', items: [{ json: { id: 'd1', body: 2 } }] });
	expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ responseCode: 422, error: { kind: 'payload_mismatch' } }]);
});

describe('Manual Executions', () => {
	const manual = async (manualExecutions: string, options: RunOptions = {}) =>
		await workbench.run(guarded(claimNode({ options: { manualExecutions } })), { mode: 'manual', items: deliveries('d1'), ...options });

	test('Separate: the second manual run of one ID is a duplicate, with a hint that says how to go on', async () => {
		await manual('separate');
		const again = await manual('separate');
		expect(claimsOf(again, 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ environment: 'test', reason: 'in_progress' }]);
		expect(again.hintsOf('Claim').join(' ')).toMatch(/Always New/);
	});

	test('Always New: each manual run is New Claim, also of what was done live', async () => {
		await workbench.run(guarded(), { items: deliveries('d1') });
		for (const _round of [1, 2, 3]) expect(claimsOf(await manual('alwaysNew'), 'Claim', NEW_CLAIM)).toMatchObject([{ environment: 'test' }]);
		expect(await environmentsOf()).toEqual(['live', 'test']);
	});

	test('Always New: also of a test claim that was completed', async () => {
		await manual('alwaysNew');
		await workbench.change('d1', "state = 'completed', outcome_reference = 'lead-1', outcome_recorded_at = now(), lease_expires_at = NULL");
		expect(claimsOf(await manual('alwaysNew'), 'Claim', NEW_CLAIM)).toMatchObject([{ state: 'processing', outcome: null }]);
		expect(await workbench.row('d1')).toMatchObject({ state: 'processing', outcome_reference: null, outcome_recorded_at: null });
	});

	test('Always New: a repeat inside one batch is still a duplicate', async () => {
		const run = await manual('alwaysNew', { items: deliveries('d1', 'd1') });
		expect([claimsOf(run, 'Claim', NEW_CLAIM).length, claimsOf(run, 'Claim', KNOWN_DUPLICATE).length]).toEqual([1, 1]);
	});

	test('Always New does not loosen what senders deliver', async () => {
		await manual('alwaysNew', { mode: 'webhook' });
		expect(claimsOf(await manual('alwaysNew', { mode: 'webhook' }), 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ environment: 'live' }]);
	});

	test('Live: manual runs claim like real deliveries, and use them up', async () => {
		expect(claimsOf(await manual('live'), 'Claim', NEW_CLAIM)).toMatchObject([{ environment: 'live' }]);
		expect(claimsOf(await workbench.run(guarded(), { items: deliveries('d1') }), 'Claim', KNOWN_DUPLICATE)).toHaveLength(1);
	});
});

test('a test claim is completed as a test claim', async () => {
	const workflow = guarded();
	workflow.nodes.Complete = completeNode({ outcomeReference: 'lead-1' });
	workflow.lines.push('Action -> Complete', 'Complete[2] -> Alarm');
	await workbench.run(workflow, { mode: 'manual', items: deliveries('d1') });
	expect(await workbench.row('d1')).toMatchObject({ environment: 'test', state: 'completed', outcome_reference: 'lead-1' });
});
