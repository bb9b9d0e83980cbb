import type { ClaimStore } from '../../store/claimStore';
import type { OutcomeKind } from '../../store/decisions';
import type { Operation, Owner } from '../../store/record';
import type { ClaimRequest } from '../../store/request';
import type { TestDatabase } from '../support/database';
import { LEASE_OVER, RETRY_DUE } from '../support/timePassed';
import { aCopyOf, anOutcome, anOwner, aRequest, changeRow, inShort, ownershipOf, rowOf } from './support/claims';
import { shareStore } from './support/sharedStore';

/** "What a claim decides" of the contract: every row, for every operation. */

let database: TestDatabase;
let store: ClaimStore;
shareStore((shared) => ({ database, store } = shared));

const firstOwner = anOwner({ executionId: 'first', nodeId: 'first-node', nodeName: 'First Claim' });

const claimed = async (operation: Operation, request: ClaimRequest) => ownershipOf((await store.claim(operation, firstOwner, [request]))[0]);

async function settled(request: ClaimRequest, outcome: OutcomeKind): Promise<void> {
	const claim = await claimed('claim', request);
	const [answer] = await store.settle(outcome, firstOwner, [anOutcome(claim, { reference: outcome === 'completed' ? 'lead-1' : null, reason: 'why' })]);
	expect(answer.verdict).toBe('recorded');
}

const USED_UP = 'attempt = max_attempts';

/** Each brings one delivery's record into a state. */
const records = {
	'received': async (request) => {
		await claimed('receive', request);
	},
	'completed': async (request) => await settled(request, 'completed'),
	'recorded by deduplicate': async (request) => {
		await claimed('deduplicate', request);
	},
	'needs_review': async (request) => await settled(request, 'needsReview'),
	'outcome_uncertain': async (request) => await settled(request, 'outcomeUncertain'),
	'retryable_failure, not due': async (request) => await settled(request, 'retryableFailure'),
	'retryable_failure, due': async (request) => {
		await settled(request, 'retryableFailure');
		await changeRow(database, request.identity, RETRY_DUE);
	},
	'retryable_failure, not due, attempts used up': async (request) => {
		await settled(request, 'retryableFailure');
		await changeRow(database, request.identity, USED_UP);
	},
	'retryable_failure, due, attempts used up': async (request) => {
		await settled(request, 'retryableFailure');
		await changeRow(database, request.identity, `${RETRY_DUE}, ${USED_UP}`);
	},
	'processing, lease running': async (request) => {
		await claimed('claim', request);
	},
	'processing, lease running, attempts used up': async (request) => {
		await claimed('claim', { ...request, maxAttempts: 1, whenLeaseExpires: 'takeOver' });
	},
	'processing, lease over, takeOver': async (request) => {
		await claimed('claim', { ...request, whenLeaseExpires: 'takeOver' });
		await changeRow(database, request.identity, LEASE_OVER);
	},
	'processing, lease over, takeOver, attempts used up': async (request) => {
		await claimed('claim', { ...request, maxAttempts: 1, whenLeaseExpires: 'takeOver' });
		await changeRow(database, request.identity, LEASE_OVER);
	},
	'processing, lease over, outcomeUncertain': async (request) => {
		await claimed('claim', request);
		await changeRow(database, request.identity, LEASE_OVER);
	},
	'processing, lease over, outcomeUncertain, attempts used up': async (request) => {
		await claimed('claim', { ...request, maxAttempts: 1 });
		await changeRow(database, request.identity, LEASE_OVER);
	},
} satisfies Record<string, (request: ClaimRequest) => Promise<void>>;

type RecordName = keyof typeof records;

const claimants = {
	'another execution': (request: ClaimRequest): [Owner, ClaimRequest] => [anOwner({ executionId: 'second', nodeName: 'Second Claim' }), aCopyOf(request)],
	'the owner itself': (request: ClaimRequest): [Owner, ClaimRequest] => [firstOwner, request],
	'another node of the same execution': (request: ClaimRequest): [Owner, ClaimRequest] => [{ ...firstOwner, nodeId: 'second-node' }, aCopyOf(request)],
	'another n8n, by chance in an execution of that number': (request: ClaimRequest): [Owner, ClaimRequest] => [
		{ ...firstOwner, instanceId: 'another instance', nodeId: 'second-node' },
		aCopyOf(request),
	],
	'a later run of the same node': (request: ClaimRequest): [Owner, ClaimRequest] => [firstOwner, aCopyOf(request)],
};

type Written = 'nothing' | { state: string; version: number; attempt: number; token: 'kept' | 'new'; history: string | null };

const nothing = 'nothing';
/** A new owner's row. */
const taken = (attempt: number, history: string, state = 'processing'): Written => ({ state, version: 2, attempt, token: 'new', history });
/** A row whose owner stays and whose state alone changes. */
const marked = (state: string, attempt: number, history: string | null): Written => ({ state, version: 1, attempt, token: 'kept', history });

const other = 'another execution';
const own = 'the owner itself';

test.each<[Operation, RecordName, keyof typeof claimants, string, Written]>([
	// own token; processing or outcome_uncertain (with receive: received)
	['claim', 'processing, lease running', own, 'new first_delivery', marked('processing', 1, null)],
	['claim', 'processing, lease over, outcomeUncertain', own, 'new first_delivery', marked('processing', 1, null)],
	['claim', 'processing, lease over, takeOver', own, 'new first_delivery', marked('processing', 1, null)],
	['claim', 'processing, lease over, takeOver, attempts used up', own, 'new first_delivery', marked('processing', 1, null)],
	['claim', 'outcome_uncertain', own, 'new first_delivery', marked('processing', 1, 'recognised_by_its_owner')],
	['receive', 'received', own, 'new first_delivery', nothing],
	['deduplicate', 'recorded by deduplicate', own, 'new first_delivery', nothing],
	// … in any other state the token gives no right
	['claim', 'completed', own, 'duplicate completed', nothing],
	['claim', 'needs_review', own, 'duplicate needs_review', nothing],
	['claim', 'retryable_failure, not due', own, 'duplicate retry_pending', nothing],

	// received
	['claim', 'received', other, 'new received', taken(1, 'received')],
	['deduplicate', 'received', other, 'new received', taken(1, 'received', 'completed')],
	['receive', 'received', other, 'duplicate received', nothing],

	// completed / needs_review / outcome_uncertain
	['claim', 'completed', other, 'duplicate completed', nothing],
	['receive', 'completed', other, 'duplicate completed', nothing],
	['deduplicate', 'completed', other, 'duplicate completed', nothing],
	['claim', 'recorded by deduplicate', other, 'duplicate completed', nothing],
	['deduplicate', 'recorded by deduplicate', other, 'duplicate completed', nothing],
	['claim', 'needs_review', other, 'duplicate needs_review', nothing],
	['receive', 'needs_review', other, 'duplicate needs_review', nothing],
	['deduplicate', 'needs_review', other, 'duplicate needs_review', nothing],
	['claim', 'outcome_uncertain', other, 'duplicate outcome_uncertain', nothing],
	['receive', 'outcome_uncertain', other, 'duplicate outcome_uncertain', nothing],
	['deduplicate', 'outcome_uncertain', other, 'duplicate outcome_uncertain', nothing],

	// attempts used up
	['claim', 'retryable_failure, due, attempts used up', other, 'duplicate needs_review', marked('needs_review', 5, 'attempts_used_up')],
	['claim', 'retryable_failure, not due, attempts used up', other, 'duplicate needs_review', marked('needs_review', 5, 'attempts_used_up')],
	['receive', 'retryable_failure, due, attempts used up', other, 'duplicate needs_review', marked('needs_review', 5, 'attempts_used_up')],
	['deduplicate', 'retryable_failure, due, attempts used up', other, 'duplicate needs_review', marked('needs_review', 5, 'attempts_used_up')],
	['claim', 'processing, lease over, takeOver, attempts used up', other, 'duplicate needs_review', marked('needs_review', 1, 'attempts_used_up')],
	['receive', 'processing, lease over, takeOver, attempts used up', other, 'duplicate needs_review', marked('needs_review', 1, 'attempts_used_up')],
	['deduplicate', 'processing, lease over, takeOver, attempts used up', other, 'duplicate needs_review', marked('needs_review', 1, 'attempts_used_up')],
	['claim', 'retryable_failure, due, attempts used up', own, 'duplicate needs_review', marked('needs_review', 5, 'attempts_used_up')],

	// retryable_failure
	['claim', 'retryable_failure, not due', other, 'duplicate retry_pending', nothing],
	['receive', 'retryable_failure, not due', other, 'duplicate retry_pending', nothing],
	['deduplicate', 'retryable_failure, not due', other, 'duplicate retry_pending', nothing],
	['claim', 'retryable_failure, due', other, 'new retry', taken(2, 'retry')],
	['deduplicate', 'retryable_failure, due', other, 'new retry', taken(2, 'retry', 'completed')],
	// The contract's row says New for any operation; but receive begins no work, so the retry stays for whoever does.
	['receive', 'retryable_failure, due', other, 'duplicate retry_pending', nothing],

	// processing, lease over
	['claim', 'processing, lease over, takeOver', other, 'new lease_expired', taken(2, 'lease_expired')],
	['deduplicate', 'processing, lease over, takeOver', other, 'new lease_expired', taken(2, 'lease_expired', 'completed')],
	['receive', 'processing, lease over, takeOver', other, 'duplicate in_progress', nothing],
	['claim', 'processing, lease over, outcomeUncertain', other, 'duplicate outcome_uncertain', marked('outcome_uncertain', 1, 'lease_expired')],
	['receive', 'processing, lease over, outcomeUncertain', other, 'duplicate outcome_uncertain', marked('outcome_uncertain', 1, 'lease_expired')],
	['deduplicate', 'processing, lease over, outcomeUncertain', other, 'duplicate outcome_uncertain', marked('outcome_uncertain', 1, 'lease_expired')],
	['claim', 'processing, lease over, outcomeUncertain, attempts used up', other, 'duplicate outcome_uncertain', marked('outcome_uncertain', 1, 'lease_expired')],

	// processing, lease running
	['claim', 'processing, lease running', other, 'duplicate in_progress', nothing],
	['receive', 'processing, lease running', other, 'duplicate in_progress', nothing],
	['deduplicate', 'processing, lease running', other, 'duplicate in_progress', nothing],
	['claim', 'processing, lease running, attempts used up', other, 'duplicate in_progress', nothing],
	['claim', 'processing, lease running', 'another node of the same execution', 'error invalid_setting', nothing],
	['deduplicate', 'processing, lease running', 'another node of the same execution', 'error invalid_setting', nothing],
	['claim', 'processing, lease running', 'another n8n, by chance in an execution of that number', 'duplicate in_progress', nothing],
	['claim', 'processing, lease running', 'a later run of the same node', 'duplicate in_progress', nothing],
	['claim', 'completed', 'another node of the same execution', 'duplicate completed', nothing],
	['claim', 'received', 'another node of the same execution', 'new received', taken(1, 'received')],
])('%s of "%s" by %s: %s', async (operation, record, claimant, expected, written) => {
	const first = aRequest();
	await records[record](first);
	const before = await rowOf(database, first.identity);
	const [owner, request] = claimants[claimant](first);

	const [answer] = await store.claim(operation, owner, [request]);
	expect(inShort(answer)).toBe(expected);

	const after = await rowOf(database, first.identity);
	if (written === nothing) {
		expect(after).toEqual(before);
		return;
	}
	const { state, version, attempt, token, history } = written;
	expect(after).toMatchObject({ state, version, attempt, owner_token: token === 'kept' ? before.owner_token : request.ownerToken });
	expect(after.first_seen_at).toEqual(before.first_seen_at);
	expect(after.history).toHaveLength(before.history.length + (history === null ? 0 : 1));
	if (history !== null) {
		expect(after.history.at(-1)).toEqual({
			at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
			state,
			version,
			attempt,
			workflow: owner.workflowId,
			execution: owner.executionId,
			by: owner.nodeName,
			reason: history,
			reference: null,
		});
	}
	if (token === 'new') expect(after).toMatchObject({ owner_execution_id: owner.executionId, owner_node_id: owner.nodeId, owner_node_name: owner.nodeName });
	if (state === 'processing') expect(after.lease_expires_at?.getTime()).toBeGreaterThan(Date.now());
	else expect(after.lease_expires_at).toBeNull();
	// The answer is the record as it is after the change.
	expect(answer).toMatchObject({ record: { state, version, attempt, ownerToken: after.owner_token, leaseExpiresAt: after.lease_expires_at?.toISOString() ?? null } });
});

describe('no record', () => {
	test.each<[Operation, object]>([
		['claim', { state: 'processing', version: 1, attempt: 1 }],
		['receive', { state: 'received', version: 1, attempt: 0, lease_expires_at: null }],
		['deduplicate', { state: 'completed', version: 1, attempt: 1, lease_expires_at: null, outcome_reference: null }],
	])('%s inserts it', async (operation, expected) => {
		const owner = anOwner();
		const request = aRequest({ eventType: 'lead.created', fingerprint: 'hash', retentionDays: 7, leaseSeconds: 120 });
		const [answer] = await store.claim(operation, owner, [request]);
		expect(inShort(answer)).toBe('new first_delivery');
		const row = await rowOf(database, request.identity);
		expect(row).toMatchObject({
			...expected,
			operation,
			claim_reason: 'first_delivery',
			owner_token: request.ownerToken,
			owner_execution_id: owner.executionId,
			event_type: 'lead.created',
			fingerprint: 'hash',
			lease_seconds: 120,
			retention_days: 7,
			max_attempts: 5,
		});
		expect(row.history).toEqual([
			expect.objectContaining({ state: row.state, version: 1, attempt: row.attempt, reason: 'first_delivery', by: owner.nodeName, execution: owner.executionId }),
		]);
		if (row.lease_expires_at) expect(row.lease_expires_at.getTime() - row.first_seen_at.getTime()).toBeCloseTo(120_000, -3);
		if (operation === 'deduplicate') {
			expect(row.outcome_recorded_at).not.toBeNull();
			expect(row.purge_after?.getTime()).toBeCloseTo(row.first_seen_at.getTime() + 7 * 86_400_000, -3);
		} else {
			expect(row.purge_after).toBeNull();
		}
	});

	test('a claim whose record was purged is new again', async () => {
		const request = aRequest();
		await settled(request, 'completed');
		await database.query('DELETE FROM idempotent_claims WHERE delivery_id = $1', [request.identity.deliveryId]);
		const [answer] = await store.claim('claim', anOwner(), [aCopyOf(request)]);
		expect(inShort(answer)).toBe('new first_delivery');
	});
});

test('an own claim that had another reason than the first delivery keeps it', async () => {
	const first = aRequest();
	await records['retryable_failure, due'](first);
	const [owner, retry] = claimants[other](first);
	expect((await store.claim('claim', owner, [retry])).map(inShort)).toEqual(['new retry']);
	expect((await store.claim('claim', owner, [retry])).map(inShort)).toEqual(['new retry']);
	expect(await rowOf(database, first.identity)).toMatchObject({ version: 2, attempt: 2 });
});

test('an own claim that is recognised gets a full lease', async () => {
	const request = aRequest({ leaseSeconds: 600 });
	await claimed('claim', request);
	await changeRow(database, request.identity, `lease_expires_at = now() + interval '5 seconds'`);
	await store.claim('claim', firstOwner, [request]);
	const { lease_expires_at: lease, updated_at: updated } = await rowOf(database, request.identity);
	expect(Number(lease) - Number(updated)).toBeCloseTo(600_000, -3);
});

test('a retry clears what the failed attempt left', async () => {
	const first = aRequest();
	const claim = await claimed('claim', first);
	await store.settle('retryableFailure', firstOwner, [anOutcome(claim, { reason: 'HTTP 500', reference: 'request-7', result: '{"status":500}', retryAfterSeconds: 0 })]);
	expect(await rowOf(database, first.identity)).toMatchObject({ outcome_reason: 'HTTP 500', outcome_reference: 'request-7' });
	const [answer] = await store.claim('claim', anOwner(), [aCopyOf(first)]);
	expect(answer).toMatchObject({ verdict: 'new', reason: 'retry', record: { outcome: null, retryAt: null } });
	// The history keeps it.
	expect((await rowOf(database, first.identity)).history[1]).toMatchObject({ reason: 'HTTP 500', reference: 'request-7' });
});

test('giving up keeps the reason of the last failure', async () => {
	const first = aRequest();
	await records['retryable_failure, due, attempts used up'](first);
	const [answer] = await store.claim('claim', anOwner(), [aCopyOf(first)]);
	expect(answer).toMatchObject({ record: { state: 'needs_review', outcome: { reason: 'why' }, retryAt: null } });
});

test('a duplicate carries the outcome of the record that it met', async () => {
	const first = aRequest();
	const claim = await claimed('claim', first);
	await store.settle('completed', firstOwner, [anOutcome(claim, { reference: 'lead-1', result: '{"score":7}', reason: null })]);
	const [answer] = await store.claim('claim', anOwner(), [aCopyOf(first)]);
	const row = await rowOf(database, first.identity);
	expect(answer).toMatchObject({
		verdict: 'duplicate',
		record: {
			owner: firstOwner,
			firstSeenAt: row.first_seen_at.toISOString(),
			outcome: { reference: 'lead-1', result: { score: 7 }, reason: null, recordedAt: row.outcome_recorded_at?.toISOString() },
		},
	});
});
