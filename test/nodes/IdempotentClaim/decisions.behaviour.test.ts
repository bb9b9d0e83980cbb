import type { IDataObject } from 'n8n-workflow';
import { claimNode, claimsOf, completeNode, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, Workbench } from '../../support/workbench';
import { anyText, textLike, textWith } from '../../support/matchers';
import { LEASE_OVER, RETRY_DUE } from '../../support/timePassed';

/** "What a claim decides", row by row of the contract, as far as a workflow can get there. */

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const claim = async (parameters: IDataObject = {}, executionId?: string) => await workbench.run(guarded(claimNode(parameters)), { items: deliveries('d1'), executionId });
const stateIs = async (state: string, rest = '') => await workbench.change('d1', `state = '${state}', lease_expires_at = NULL${rest}`);

/** The one claim of a run, and the output it left by. */
function verdictOf(run: Awaited<ReturnType<typeof claim>>) {
	const [output] = [NEW_CLAIM, KNOWN_DUPLICATE, OPERATIONAL_ERROR].filter((one) => run.outputOf('Claim', one).length > 0);
	return { output, ...claimsOf(run, 'Claim', output)[0] };
}

test('processing, lease running: in_progress; the record is not touched', async () => {
	await claim();
	const before = await workbench.row('d1');
	expect(verdictOf(await claim())).toMatchObject({ output: KNOWN_DUPLICATE, reason: 'in_progress', version: 1 });
	expect(await workbench.row('d1')).toEqual(before);
});

test.each(['completed', 'needs_review', 'outcome_uncertain'])('%s: a duplicate with that reason', async (state) => {
	await claim();
	await stateIs(state, state === 'completed' ? ", outcome_reference = 'lead-7', outcome_result = '{\"name\":\"Ada\"}', outcome_recorded_at = now()" : '');
	const before = await workbench.row('d1');
	const verdict = verdictOf(await claim());
	expect(verdict).toMatchObject({ output: KNOWN_DUPLICATE, reason: state, state });
	if (state === 'completed') expect(verdict.outcome).toMatchObject({ reference: 'lead-7', result: { name: 'Ada' }, recordedAt: textLike(/Z$/) });
	expect(await workbench.row('d1')).toEqual(before);
});

test('retryable_failure, not due: retry_pending', async () => {
	await claim();
	await stateIs('retryable_failure', ", retry_at = now() + interval '1 h'");
	expect(verdictOf(await claim())).toMatchObject({ output: KNOWN_DUPLICATE, reason: 'retry_pending', version: 1, retryAt: anyText });
});

test('retryable_failure, due: New Claim "retry" by another owner', async () => {
	const first = verdictOf(await claim({}, '1'));
	await stateIs('retryable_failure', `, ${RETRY_DUE}`);
	const second = verdictOf(await claim({}, '2'));
	expect(second).toMatchObject({ output: NEW_CLAIM, reason: 'retry', version: 2, attempt: 2, state: 'processing', retryAt: null, owner: { executionId: '2' }, idempotencyKey: first.idempotencyKey });
	expect(second.handle).not.toBe(first.handle);
	expect(await workbench.row('d1')).toMatchObject({ state: 'processing', version: 2, attempt: 2, owner_execution_id: '2', retry_at: null });
});

test('retryable_failure, attempts used up: needs_review, not another attempt', async () => {
	await claim({ options: { maxAttempts: 1 } });
	await stateIs('retryable_failure', `, ${RETRY_DUE}`);
	const { owner_token: token } = await workbench.row('d1');
	expect(verdictOf(await claim({ options: { maxAttempts: 99 } }))).toMatchObject({ output: KNOWN_DUPLICATE, reason: 'needs_review', state: 'needs_review' });
	expect(await workbench.row('d1')).toMatchObject({ state: 'needs_review', owner_token: token, version: 1 });
});

test('processing, lease over, take over: New Claim "lease_expired"', async () => {
	await claim({ options: { whenLeaseExpires: 'takeOver' } });
	await workbench.change('d1', LEASE_OVER);
	expect(verdictOf(await claim())).toMatchObject({ output: NEW_CLAIM, reason: 'lease_expired', version: 2, attempt: 2 });
});

test('processing, lease over, take over, attempts used up: needs_review', async () => {
	await claim({ options: { whenLeaseExpires: 'takeOver', maxAttempts: 1 } });
	await workbench.change('d1', LEASE_OVER);
	expect(verdictOf(await claim())).toMatchObject({ output: KNOWN_DUPLICATE, reason: 'needs_review' });
});

test('processing, lease over, outcome uncertain: marked so, token kept, nothing repeated', async () => {
	await claim();
	await workbench.change('d1', LEASE_OVER);
	const { owner_token: token } = await workbench.row('d1');
	expect(verdictOf(await claim())).toMatchObject({ output: KNOWN_DUPLICATE, reason: 'outcome_uncertain', state: 'outcome_uncertain', version: 1 });
	expect(await workbench.row('d1')).toMatchObject({ state: 'outcome_uncertain', owner_token: token, version: 1 });
});

test('a redelivery\'s own settings never loosen those of the owner', async () => {
	await claim({ options: { whenLeaseExpires: 'outcomeUncertain', maxAttempts: 2 } });
	await workbench.change('d1', LEASE_OVER);
	expect(verdictOf(await claim({ options: { whenLeaseExpires: 'takeOver', maxAttempts: 50 } }))).toMatchObject({ reason: 'outcome_uncertain' });
});

test('each new ownership writes its own settings', async () => {
	await claim({ options: { whenLeaseExpires: 'takeOver', leaseSeconds: 60, maxAttempts: 2 }, retentionDays: 3 });
	expect(await workbench.row('d1')).toMatchObject({ when_lease_expires: 'takeOver', lease_seconds: 60, max_attempts: 2, retention_days: 3 });
	await workbench.change('d1', LEASE_OVER);
	await claim({ options: { whenLeaseExpires: 'outcomeUncertain', leaseSeconds: 90, maxAttempts: 9 }, retentionDays: 8 });
	expect(await workbench.row('d1')).toMatchObject({ when_lease_expires: 'outcomeUncertain', lease_seconds: 90, max_attempts: 9, retention_days: 8 });
});

describe('a delivery that came by receive', () => {
	test('again by receive: a duplicate "received"', async () => {
		await claim({ operation: 'receive' });
		expect(verdictOf(await claim({ operation: 'receive' }))).toMatchObject({ output: KNOWN_DUPLICATE, reason: 'received', responseCode: 200 });
	});

	test('claimed: New Claim "received", attempt 1', async () => {
		await claim({ operation: 'receive' });
		expect(verdictOf(await claim())).toMatchObject({ output: NEW_CLAIM, reason: 'received', state: 'processing', version: 2, attempt: 1, handle: anyText });
	});
});

test('another node of the same execution: the two share an action by mistake', async () => {
	const workflow = guarded();
	workflow.nodes.Second = claimNode({}, { type: workflow.nodes.Claim.type });
	workflow.lines = ['Start -> Claim', 'Claim -> Second', 'Second -> Action', 'Second[1] -> Duplicate', 'Second[2] -> Alarm'];
	const run = await workbench.run(workflow, { items: deliveries('d1') });
	expect(claimsOf(run, 'Second', OPERATIONAL_ERROR)).toMatchObject([{ error: { kind: 'invalid_setting', hint: textWith('Action') } }]);
	expect(run.ran('Action')).toBe(false);
	expect(await workbench.row('d1')).toMatchObject({ owner_node_name: 'Claim', version: 1 });
});

test('a loop that comes back with the same delivery meets its own claim as a duplicate', async () => {
	const workflow = guarded();
	workflow.nodes.Again = { type: 'test.repeat', parameters: { rounds: 2 } };
	workflow.lines = ['Start -> Claim', 'Claim -> Again', 'Claim[1] -> Duplicate', 'Claim[2] -> Alarm', 'Again -> Claim'];
	const run = await workbench.run(workflow, { items: deliveries('d1') });
	expect(run.timesRun('Claim')).toBe(2);
	expect([claimsOf(run, 'Claim', NEW_CLAIM).length, claimsOf(run, 'Claim', KNOWN_DUPLICATE).length]).toEqual([1, 1]);
	expect(claimsOf(run, 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ reason: 'in_progress' }]);
});

test('a loop over items claims each once, and completes each', async () => {
	const workflow = guarded();
	workflow.nodes.Loop = { type: 'n8n-nodes-base.splitInBatches' };
	workflow.nodes.Create = { type: 'n8n-nodes-base.httpRequest' };
	workflow.nodes.Complete = completeNode({ outcomeReference: '={{ $json.id }}' });
	workflow.nodes.Next = { type: 'n8n-nodes-base.noOp' };
	workflow.lines = ['Start -> Loop', 'Loop[1] -> Claim', 'Claim -> Create', 'Create -> Complete', 'Complete -> Next', 'Claim[1] -> Next', 'Claim[2] -> Next', 'Complete[1] -> Next', 'Complete[2] -> Alarm', 'Next -> Loop'];
	const run = await workbench.run(workflow, { items: deliveries('d1', 'd2', 'd1', 'd3') });
	expect([run.status, run.timesRun('Claim')]).toEqual(['success', 4]);
	expect(claimsOf(run, 'Claim', NEW_CLAIM).map(({ deliveryId }) => deliveryId)).toEqual(['d1', 'd2', 'd3']);
	expect(claimsOf(run, 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ deliveryId: 'd1', reason: 'completed' }]);
	expect((await workbench.rows()).map((row) => row.state)).toEqual(['completed', 'completed', 'completed']);
});

test('twenty copies at once: one New Claim, nineteen duplicates, no error', async () => {
	const runs = await Promise.all(Array.from({ length: 20 }, async () => await claim()));
	const count = (output: number) => runs.flatMap((run) => run.outputOf('Claim', output)).length;
	expect([count(NEW_CLAIM), count(KNOWN_DUPLICATE), count(OPERATIONAL_ERROR)]).toEqual([1, 19, 0]);
	expect(await workbench.rows()).toHaveLength(1);
});

test('twenty batches of the same deliveries in different orders at once: each delivery new once, no deadlock', async () => {
	const ids = Array.from({ length: 50 }, (_, index) => `d${index}`);
	const runs = await Promise.all(
		Array.from({ length: 20 }, async (_, turn) => await workbench.run(guarded(), { items: deliveries(...ids.slice(turn), ...ids.slice(0, turn).reverse()) })),
	);
	const all = (output: number) => runs.flatMap((run) => claimsOf(run, 'Claim', output));
	expect(all(OPERATIONAL_ERROR)).toEqual([]);
	expect(all(NEW_CLAIM).map(({ deliveryId }) => deliveryId).sort()).toEqual([...ids].sort());
	expect(all(KNOWN_DUPLICATE)).toHaveLength(19 * 50);
});
