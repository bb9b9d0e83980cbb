import type { IDataObject } from 'n8n-workflow';
import { answerOf, claimHandles, settle } from '../../support/settling';
import { claimNode, claimsOf, completeNode, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, RECORDED, STALE_CLAIM, Workbench } from '../../support/workbench';
import { anyText, textLike } from '../../support/matchers';
import { LEASE_OVER } from '../../support/timePassed';

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const redelivered = async (parameters: IDataObject = {}) => await workbench.run(guarded(claimNode(parameters)), { items: deliveries('d1') });

/** Claims d1 and settles it right behind the action, as most workflows do. */
async function settleUpstream(parameters: IDataObject, claim: IDataObject = {}) {
	const workflow = guarded(claimNode(claim));
	workflow.nodes.Complete = completeNode(parameters);
	workflow.lines.push('Action -> Complete', 'Complete[1] -> Duplicate', 'Complete[2] -> Alarm');
	return await workbench.run(workflow, { items: [{ json: { id: 'd1', kept: { whole: true } }, binary: { file: { data: 'aGk=', mimeType: 'text/plain' } } }] });
}

test('completed: recorded with its reference; the item goes on whole', async () => {
	const run = await settleUpstream({ outcomeReference: 'lead-7' });
	const [item] = run.itemsOf('Complete', RECORDED);
	expect(item).toMatchObject({ json: { id: 'd1', kept: { whole: true } }, binary: { file: { data: 'aGk=' } }, pairedItem: { item: 0 } });
	expect(Object.keys(item.json.claim as object)).toHaveLength(22);
	expect(item.json.claim).toMatchObject({
		status: 'recorded',
		reason: null,
		responseCode: 200,
		state: 'completed',
		version: 1,
		attempt: 1,
		deliveryId: 'd1',
		leaseExpiresAt: null,
		outcome: { reference: 'lead-7', result: null, reason: null, recordedAt: textLike(/Z$/) },
		error: null,
	});
	expect(await workbench.row('d1')).toMatchObject({ state: 'completed', outcome_reference: 'lead-7', lease_expires_at: null, payload: null });
	const [{ days }] = await workbench.database.query('SELECT extract(epoch FROM purge_after - outcome_recorded_at) / 86400 AS days FROM idempotent_claims');
	expect(Number(days)).toBeCloseTo(30, 4);
});

test('a numeric reference is its text; an empty one is none', async () => {
	await settleUpstream({ outcomeReference: '={{ 42 }}' });
	expect((await workbench.row('d1')).outcome_reference).toBe('42');
	await workbench.clear();
	await settleUpstream({ outcomeReference: '' });
	expect(await workbench.row('d1')).toMatchObject({ state: 'completed', outcome_reference: null });
});

test('what was recorded is handed to later duplicates: reference and result', async () => {
	await settleUpstream({ outcomeReference: 'lead-7', options: { result: '={{ { name: "Ada", tags: [1, 2] } }}' } });
	const [claim] = claimsOf(await redelivered(), 'Claim', KNOWN_DUPLICATE);
	expect(claim).toMatchObject({ reason: 'completed', responseCode: 200, outcome: { reference: 'lead-7', result: { name: 'Ada', tags: [1, 2] } } });
});

test.each([
	['a text of JSON', '{"a":[1]}', { a: [1] }],
	['a list', '={{ [1, 2] }}', [1, 2]],
	['a number', '={{ 5 }}', 5],
])('a result that is %s is stored as that', async (_name, result, stored) => {
	await settleUpstream({ options: { result } });
	expect((await workbench.row('d1')).outcome_result).toEqual(stored);
});

test('a result over 64 KiB is refused, and the claim stays open', async () => {
	const run = await settleUpstream({ options: { result: '={{ "x".repeat(65600) }}' } });
	expect(claimsOf(run, 'Complete', OPERATIONAL_ERROR)).toMatchObject([{ error: { kind: 'invalid_setting' } }]);
	expect((await workbench.row('d1')).state).toBe('processing');
});

test('Keep Payload leaves the delivery in the row', async () => {
	await settleUpstream({ options: { keepPayload: true } });
	expect(await workbench.row('d1')).toMatchObject({ state: 'completed', payload: { id: 'd1' } });
});

test('no action needed: completed without a reference, with a reason', async () => {
	expect(answerOf(await settleUpstream({ outcome: 'noActionNeeded', reason: 'not a lead' }))).toMatchObject({ output: RECORDED, state: 'completed', outcome: { reference: null, reason: 'not a lead' } });
	expect(claimsOf(await redelivered(), 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ reason: 'completed', outcome: { reason: 'not a lead' } }]);
});

test.each([
	['outcomeUncertain', 'outcome_uncertain'],
	['needsReview', 'needs_review'],
])('%s: kept with reason and payload, and not repeated', async (outcome, state) => {
	expect(answerOf(await settleUpstream({ outcome, reason: 'the line broke' }))).toMatchObject({ output: RECORDED, responseCode: 200, state, outcome: { reason: 'the line broke' } });
	expect(await workbench.row('d1')).toMatchObject({ state, payload: { id: 'd1' }, lease_expires_at: null, purge_after: null });
	expect(claimsOf(await redelivered(), 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ reason: state }]);
});

describe('retryable failure', () => {
	const secondsUntilRetry = async () => Number((await workbench.database.query("SELECT extract(epoch FROM retry_at - outcome_recorded_at) AS s FROM idempotent_claims"))[0].s);

	test('due later: the sender is told to come again, and a redelivery before that is retry_pending', async () => {
		expect(answerOf(await settleUpstream({ outcome: 'retryableFailure', reason: '429' }))).toMatchObject({ output: RECORDED, responseCode: 503, state: 'retryable_failure', retryAt: anyText });
		expect(await secondsUntilRetry()).toBeCloseTo(60, 1);
		expect(claimsOf(await redelivered(), 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ reason: 'retry_pending', responseCode: 503 }]);
	});

	test('due at once: a redelivery is New Claim', async () => {
		await settleUpstream({ outcome: 'retryableFailure', retryAfterSeconds: 0 });
		expect(claimsOf(await redelivered(), 'Claim', NEW_CLAIM)).toMatchObject([{ reason: 'retry', attempt: 2 }]);
	});

	test.each([
		[2, 120],
		[4, 480],
		[12, 86400],
		[400, 86400],
	])('at attempt %i the delay is %i s: doubled each time, at most a day', async (attempt, seconds) => {
		const [handle] = await claimHandles(workbench, ['d1'], { options: { maxAttempts: 1000 } });
		await workbench.change('d1', `attempt = ${attempt}`);
		await settle(workbench, [handle], { outcome: 'retryableFailure' });
		expect(await secondsUntilRetry()).toBeCloseTo(seconds, 0);
	});

	test('with its attempts used up it records needs_review', async () => {
		const run = await settleUpstream({ outcome: 'retryableFailure' }, { options: { maxAttempts: 1 } });
		expect(answerOf(run)).toMatchObject({ output: RECORDED, state: 'needs_review', retryAt: null });
	});

	test('of a delivery that came by receive: 200, the sender need not come again', async () => {
		await workbench.run(guarded(claimNode({ operation: 'receive' })), { items: deliveries('d1') });
		expect(answerOf(await settleUpstream({ outcome: 'retryableFailure' }))).toMatchObject({ output: RECORDED, responseCode: 200, state: 'retryable_failure' });
	});
});

describe('the answers, row by row', () => {
	const COMPLETED = "state = 'completed', outcome_reference = 'lead-7', outcome_recorded_at = now(), lease_expires_at = NULL";
	const state = (name: string) => `state = '${name}', lease_expires_at = NULL${name === 'retryable_failure' ? ", retry_at = now() + interval '1 h'" : ''}`;
	const complete = { outcome: 'completed', outcomeReference: 'lead-7' };

	test.each<[string, string, IDataObject]>([
		['completed with the same reference', COMPLETED, complete],
		['retryable failure', state('retryable_failure'), { outcome: 'retryableFailure' }],
		['outcome uncertain', state('outcome_uncertain'), { outcome: 'outcomeUncertain' }],
		['needs review', state('needs_review'), { outcome: 'needsReview' }],
		['no action needed', "state = 'completed', outcome_recorded_at = now(), lease_expires_at = NULL", { outcome: 'noActionNeeded' }],
	])('own token, already %s: Recorded, nothing written', async (_name, change, parameters) => {
		const [handle] = await claimHandles(workbench, ['d1']);
		await workbench.change('d1', change);
		const before = await workbench.row('d1');
		expect(answerOf(await settle(workbench, [handle], parameters))).toMatchObject({ output: RECORDED, status: 'recorded' });
		expect(await workbench.row('d1')).toEqual(before);
	});

	test.each(['processing', 'outcome_uncertain'])('own token, %s, past the lease: every outcome is recorded', async (from) => {
		for (const [outcome, to] of Object.entries({ completed: 'completed', noActionNeeded: 'completed', retryableFailure: 'retryable_failure', outcomeUncertain: 'outcome_uncertain', needsReview: 'needs_review', extendLease: from })) {
			const [handle] = await claimHandles(workbench, ['d1']);
			await workbench.change('d1', `state = '${from}', lease_expires_at = now() - interval '1 h'`);
			expect(answerOf(await settle(workbench, [handle], { outcome }))).toMatchObject({ output: RECORDED, state: to });
			expect((await workbench.row('d1')).state).toBe(to);
			await workbench.clear();
		}
	});

	test.each(['retryable_failure', 'needs_review'])('own token, %s: completed and no action needed are recorded, others are stale', async (from) => {
		for (const outcome of ['completed', 'noActionNeeded', 'outcomeUncertain', 'extendLease']) {
			const [handle] = await claimHandles(workbench, ['d1']);
			await workbench.change('d1', state(from));
			const positive = outcome === 'completed' || outcome === 'noActionNeeded';
			expect({ asked: outcome, ...answerOf(await settle(workbench, [handle], { outcome })) }).toMatchObject(positive ? { output: RECORDED, state: 'completed' } : { output: STALE_CLAIM, reason: `already_${from}` });
			await workbench.clear();
		}
	});

	test('own token, completed with another reference: stale, and that reference is kept in the history, once', async () => {
		const [handle] = await claimHandles(workbench, ['d1']);
		await settle(workbench, [handle], complete);
		for (const _time of [1, 2]) {
			expect(answerOf(await settle(workbench, [handle], { outcome: 'completed', outcomeReference: 'lead-8' }))).toMatchObject({ output: STALE_CLAIM, reason: 'already_completed', responseCode: 200, outcome: { reference: 'lead-7' } });
		}
		const row = await workbench.row('d1');
		expect(row.outcome_reference).toBe('lead-7');
		expect(JSON.stringify(row.history).split('lead-8')).toHaveLength(2);
	});

	test.each<[string, string, string]>([
		['taken_over', "version = version + 1, owner_token = 'another'", 'processing'],
		['taken_over', "version = version + 1, owner_token = 'another', state = 'outcome_uncertain', lease_expires_at = NULL", 'outcome_uncertain'],
		['already_completed', `version = version + 1, owner_token = 'another', ${COMPLETED}`, 'completed'],
		['already_completed', `version = version + 1, owner_token = 'another', resolved_by = 'Ada', ${COMPLETED}`, 'completed'],
		['resolved', "version = version + 1, owner_token = 'another', resolved_by = 'Ada', state = 'needs_review', lease_expires_at = NULL", 'needs_review'],
	])('another token: stale "%s" (%s)', async (reason, change, recordState) => {
		const [handle] = await claimHandles(workbench, ['d1']);
		await workbench.change('d1', change);
		const { history: _history, ...before } = await workbench.row('d1');
		const answer = answerOf(await settle(workbench, [handle], { outcome: 'completed', outcomeReference: 'late-1' }));
		expect(answer).toMatchObject({ output: STALE_CLAIM, status: 'stale', reason, state: recordState, error: null });
		const { history, ...after } = await workbench.row('d1');
		expect({ ...after, updated_at: null }).toEqual({ ...before, updated_at: null });
		expect(JSON.stringify(history)).toContain('late-1');
	});

	test('no row: stale "not_found"', async () => {
		const [handle] = await claimHandles(workbench, ['d1']);
		await workbench.database.query('DELETE FROM idempotent_claims');
		expect(answerOf(await settle(workbench, [handle], complete))).toMatchObject({ output: STALE_CLAIM, reason: 'not_found', deliveryId: 'd1', state: null });
		expect(await workbench.rows()).toEqual([]);
	});

	test('a real takeover: the late owner is told, the new one is not disturbed', async () => {
		const takeOver = { options: { whenLeaseExpires: 'takeOver' } };
		const [late] = await claimHandles(workbench, ['d1'], takeOver);
		await workbench.change('d1', LEASE_OVER);
		const [current] = await claimHandles(workbench, ['d1'], takeOver);
		expect(answerOf(await settle(workbench, [late], { outcome: 'extendLease' }))).toMatchObject({ output: STALE_CLAIM, reason: 'taken_over' });
		expect(answerOf(await settle(workbench, [late], { outcome: 'retryableFailure' }))).toMatchObject({ output: STALE_CLAIM, reason: 'taken_over' });
		expect(answerOf(await settle(workbench, [current], complete))).toMatchObject({ output: RECORDED, version: 2 });
		expect(answerOf(await settle(workbench, [late], { outcome: 'completed', outcomeReference: 'lead-8' }))).toMatchObject({ output: STALE_CLAIM, reason: 'already_completed' });
	});
});

describe('Extend Lease', () => {
	test('gives a full lease from now, changes no state, leaves no history, and makes the caller the owner on record', async () => {
		const [handle] = await claimHandles(workbench, ['d1'], {}, '1');
		await workbench.change('d1', "lease_expires_at = now() - interval '1 h'");
		const { history } = await workbench.row('d1');
		const answer = answerOf(await settle(workbench, [handle], { outcome: 'extendLease', leaseSeconds: 900 }, { executionId: '2' }));
		expect(answer).toMatchObject({ output: RECORDED, state: 'processing', version: 1, handle, owner: { executionId: '2' } });
		const row = await workbench.row('d1');
		expect(row).toMatchObject({ state: 'processing', owner_execution_id: '2', history });
		const [{ seconds }] = await workbench.database.query('SELECT extract(epoch FROM lease_expires_at - clock_timestamp()) AS seconds FROM idempotent_claims');
		expect(Number(seconds)).toBeGreaterThan(890);
	});

	test('its handle still completes the claim', async () => {
		const [handle] = await claimHandles(workbench, ['d1']);
		const { handle: extended } = answerOf(await settle(workbench, [handle], { outcome: 'extendLease' }));
		expect(answerOf(await settle(workbench, [extended], { outcome: 'completed' }))).toMatchObject({ output: RECORDED, state: 'completed' });
	});

	test('between claim and action: a check that lets owners on and stops others', async () => {
		const workflow = guarded();
		workflow.nodes.Check = completeNode({ outcome: 'extendLease' });
		workflow.nodes.Stop = { type: 'n8n-nodes-base.noOp' };
		workflow.nodes.Complete = completeNode({ outcomeReference: 'lead-7' });
		workflow.lines = ['Start -> Claim', 'Claim -> Check', 'Claim[1] -> Duplicate', 'Claim[2] -> Alarm', 'Check -> Action', 'Check[1] -> Stop', 'Check[2] -> Alarm', 'Action -> Complete', 'Complete[2] -> Alarm'];
		const run = await workbench.run(workflow, { items: deliveries('d1', 'd2') });
		expect(claimsOf(run, 'Complete', RECORDED)).toHaveLength(2);
		expect(run.ran('Stop')).toBe(false);
	});

	test.each([0, -1, 1.5, 31 * 86400 + 1])('a lease of %d seconds is refused', async (leaseSeconds) => {
		const [handle] = await claimHandles(workbench, ['d1']);
		expect(answerOf(await settle(workbench, [handle], { outcome: 'extendLease', leaseSeconds }))).toMatchObject({ output: OPERATIONAL_ERROR, error: { kind: 'invalid_setting' } });
	});
});

test('a batch: each claim its own answer, in input order on each output', async () => {
	const [one, two, three] = await claimHandles(workbench, ['d1', 'd2', 'd3']);
	await workbench.change('d2', "owner_token = 'another'");
	const run = await settle(workbench, [three, 'nonsense', two, one], { outcomeReference: '={{ "ref" + $itemIndex }}' });
	expect(claimsOf(run, 'Complete', RECORDED).map(({ deliveryId }) => deliveryId)).toEqual(['d3', 'd1']);
	expect(claimsOf(run, 'Complete', STALE_CLAIM).map(({ deliveryId }) => deliveryId)).toEqual(['d2']);
	expect(run.itemsOf('Complete', RECORDED).map(({ pairedItem }) => pairedItem)).toEqual([{ item: 0 }, { item: 3 }]);
	expect((await workbench.rows()).map((row) => row.outcome_reference)).toEqual(['ref3', null, 'ref0']);
});

test('the same claim twice in one batch: the same outcome is recorded once, another is stale', async () => {
	const [handle] = await claimHandles(workbench, ['d1']);
	const same = await settle(workbench, [handle, handle], { outcomeReference: 'lead-7' });
	expect(claimsOf(same, 'Complete', RECORDED)).toHaveLength(2);
	const other = await settle(workbench, [handle, handle], { outcomeReference: '={{ "lead-" + (7 + $itemIndex) }}' });
	expect(claimsOf(other, 'Complete', RECORDED)).toHaveLength(1);
	expect(claimsOf(other, 'Complete', STALE_CLAIM)).toMatchObject([{ reason: 'already_completed' }]);
});

test('outcomes that differ from item to item', async () => {
	const handles = await claimHandles(workbench, ['d1', 'd2', 'd3']);
	const run = await settle(workbench, handles, { outcome: '={{ ["completed", "needsReview", "retryableFailure"][$itemIndex] }}', reason: 'by item' });
	expect(claimsOf(run, 'Complete', RECORDED).map(({ state }) => state)).toEqual(['completed', 'needs_review', 'retryable_failure']);
	expect((await workbench.rows()).map((row) => row.state)).toEqual(['completed', 'needs_review', 'retryable_failure']);
});
