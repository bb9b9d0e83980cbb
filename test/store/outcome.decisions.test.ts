import type { ClaimStore } from '../../store/claimStore';
import type { OutcomeKind } from '../../store/decisions';
import type { Ownership } from '../../store/handle';
import type { State } from '../../store/record';
import type { TestDatabase } from '../support/database';
import { LEASE_OVER, RETRY_DUE } from '../support/timePassed';
import { aCopyOf, anOutcome, anOwner, aRequest, changeRow, ownershipOf, rowOf } from './support/claims';
import { shareStore } from './support/sharedStore';

/** Complete Claim's table of answers: every state of the record, for every outcome. */

let database: TestDatabase;
let store: ClaimStore;
shareStore((shared) => ({ database, store } = shared));

const OUTCOMES: OutcomeKind[] = ['completed', 'noActionNeeded', 'retryableFailure', 'outcomeUncertain', 'needsReview', 'extendLease'];
const caller = anOwner({ executionId: 'caller', nodeName: 'Complete Claim' });

async function settle(outcome: OutcomeKind, claim: Ownership, reference: string | null = null): Promise<string> {
	const [answer] = await store.settle(outcome, caller, [anOutcome(claim, { reference, reason: 'why' })]);
	if (answer.verdict === 'error') return `error ${answer.error.kind}`;
	return answer.verdict === 'stale' ? `stale ${answer.reason}` : `recorded ${answer.record.state}`;
}

type Records = Record<string, () => Promise<Ownership>>;

async function processing(changes = {}): Promise<Ownership> {
	return ownershipOf((await store.claim('claim', anOwner(), [aRequest(changes)]))[0]);
}

async function after(outcome: OutcomeKind, reference: string | null = null): Promise<Ownership> {
	const claim = await processing();
	await settle(outcome, claim, reference);
	return claim;
}

async function withRow(claim: Ownership, assignments: string): Promise<Ownership> {
	await changeRow(database, claim.identity, assignments);
	return claim;
}

/** Records that still belong to whoever asks. */
const own: Records = {
	'processing': async () => await processing(),
	'processing, lease over': async () => await withRow(await processing(), LEASE_OVER),
	'processing, last attempt': async () => await processing({ maxAttempts: 1 }),
	'outcome_uncertain': async () => await after('outcomeUncertain'),
	'outcome_uncertain under a lease': async () => await withRow(await after('outcomeUncertain'), `lease_expires_at = now() + interval '1 hour'`),
	'retryable_failure': async () => await after('retryableFailure'),
	'needs_review': async () => await after('needsReview'),
	'needs_review, attempts used up': async () => {
		const claim = await processing({ maxAttempts: 1 });
		await settle('retryableFailure', claim);
		return claim;
	},
	'completed': async () => await after('completed', 'lead-1'),
	'completed without reference': async () => await after('noActionNeeded'),
	'received': async () => ownershipOf((await store.claim('receive', anOwner(), [aRequest()]))[0]),
};

/** Records that another ownership has now; what is returned is the replaced one. */
async function replaced(then: OutcomeKind | null): Promise<Ownership> {
	const first = aRequest({ whenLeaseExpires: 'takeOver' });
	const old = ownershipOf((await store.claim('claim', anOwner(), [first]))[0]);
	await changeRow(database, first.identity, LEASE_OVER);
	const next = ownershipOf((await store.claim('claim', anOwner(), [aCopyOf(first)]))[0]);
	if (then) await settle(then, next, then === 'completed' ? 'lead-2' : null);
	return old;
}

type Row = [record: string, outcome: OutcomeKind, reference: string | null, answer: string, written: 'nothing' | State | 'lease'];

const recorded = (record: string, outcome: OutcomeKind, state: State): Row => [record, outcome, null, `recorded ${state}`, state];
const already = (record: string, outcome: OutcomeKind, reference: string | null, state: State): Row => [record, outcome, reference, `recorded ${state}`, 'nothing'];
const stale = (record: string, outcome: OutcomeKind, state: State): Row => [record, outcome, null, `stale already_${state}`, 'nothing'];

const open = (record: string, last = false): Row[] => [
	recorded(record, 'completed', 'completed'),
	recorded(record, 'noActionNeeded', 'completed'),
	recorded(record, 'retryableFailure', last ? 'needs_review' : 'retryable_failure'),
	recorded(record, 'needsReview', 'needs_review'),
];
const lease = (record: string, state: State): Row => [record, 'extendLease', null, `recorded ${state}`, 'lease'];
const allStale = (record: string, outcomes: OutcomeKind[], state: State): Row[] => outcomes.map((outcome) => stale(record, outcome, state));

const ownRows: Row[] = [
	// own token, processing or outcome_uncertain (also past the lease); any outcome
	...['processing', 'processing, lease over'].flatMap((record) => [...open(record), recorded(record, 'outcomeUncertain', 'outcome_uncertain'), lease(record, 'processing')]),
	...open('processing, last attempt', true),
	...open('outcome_uncertain'),
	already('outcome_uncertain', 'outcomeUncertain', null, 'outcome_uncertain'),
	lease('outcome_uncertain', 'outcome_uncertain'),
	...open('outcome_uncertain under a lease'),
	recorded('outcome_uncertain under a lease', 'outcomeUncertain', 'outcome_uncertain'),
	lease('outcome_uncertain under a lease', 'outcome_uncertain'),
	// own token, retryable_failure or needs_review; completed or noActionNeeded
	recorded('retryable_failure', 'completed', 'completed'),
	recorded('retryable_failure', 'noActionNeeded', 'completed'),
	already('retryable_failure', 'retryableFailure', null, 'retryable_failure'),
	...allStale('retryable_failure', ['outcomeUncertain', 'needsReview', 'extendLease'], 'retryable_failure'),
	recorded('needs_review', 'completed', 'completed'),
	recorded('needs_review', 'noActionNeeded', 'completed'),
	already('needs_review', 'needsReview', null, 'needs_review'),
	...allStale('needs_review', ['retryableFailure', 'outcomeUncertain', 'extendLease'], 'needs_review'),
	already('needs_review, attempts used up', 'retryableFailure', null, 'needs_review'),
	// own token, already as asked (completed: same reference)
	already('completed', 'completed', 'lead-1', 'completed'),
	['completed', 'completed', 'lead-2', 'stale already_completed', 'nothing'],
	...allStale('completed', OUTCOMES, 'completed'),
	already('completed without reference', 'completed', null, 'completed'),
	already('completed without reference', 'noActionNeeded', null, 'completed'),
	...allStale('completed without reference', ['retryableFailure', 'outcomeUncertain', 'needsReview', 'extendLease'], 'completed'),
	// own token, anything else
	...allStale('received', OUTCOMES, 'received'),
];

test.each(ownRows)('own token, "%s": %s (reference %s) is %s', async (record, outcome, reference, answer, written) => {
	const claim = await own[record]();
	const before = await rowOf(database, claim.identity);
	expect(await settle(outcome, claim, reference)).toBe(answer);
	const after = await rowOf(database, claim.identity);

	expect(after).toMatchObject({ version: before.version, attempt: before.attempt, owner_token: before.owner_token });
	if (written === 'nothing') {
		// Only what a stale call created may be added to the history.
		expect({ ...after, history: [] }).toEqual({ ...before, history: [] });
		expect(after.history).toHaveLength(before.history.length + (answer.startsWith('stale') && reference !== null ? 1 : 0));
		return;
	}
	if (written === 'lease') {
		expect(after).toMatchObject({ state: before.state, history: before.history });
		expect(Number(after.lease_expires_at)).toBeGreaterThan(Date.now());
		return;
	}
	expect(after).toMatchObject({ state: written, lease_expires_at: null, outcome_reason: 'why' });
	expect(after.history).toEqual([
		...before.history,
		expect.objectContaining({ state: written, version: 1, attempt: before.attempt, execution: 'caller', by: 'Complete Claim', reason: 'why' }),
	]);
	expect(after.purge_after === null).toBe(written !== 'completed');
	expect(after.retry_at === null).toBe(written !== 'retryable_failure');
});

describe.each(OUTCOMES)("another ownership's token, %s", (outcome) => {
	test.each<[string, () => Promise<Ownership>, string]>([
		['the new owner is at work', async () => await replaced(null), 'taken_over'],
		['the new owner failed', async () => await replaced('retryableFailure'), 'taken_over'],
		['the new owner does not know', async () => await replaced('outcomeUncertain'), 'taken_over'],
		['a person must decide', async () => await replaced('needsReview'), 'taken_over'],
		['the new owner completed it', async () => await replaced('completed'), 'already_completed'],
		['an operator released it', async () => await withRow(await replaced('retryableFailure'), `resolved_by = 'Ada'`), 'resolved'],
		['an operator completed it', async () => await withRow(await replaced('completed'), `resolved_by = 'Ada'`), 'already_completed'],
	])('%s', async (_what, make, reason) => {
		const old = await make();
		const before = await rowOf(database, old.identity);
		expect(await settle(outcome, old)).toBe(`stale ${reason}`);
		expect(await rowOf(database, old.identity)).toEqual(before);
	});

	test('no row', async () => {
		const claim = await processing();
		await database.query('DELETE FROM idempotent_claims WHERE delivery_id = $1', [claim.identity.deliveryId]);
		expect(await settle(outcome, claim, 'lead-1')).toBe('stale not_found');
	});
});

test('an operator who decided is forgotten with the next ownership', async () => {
	const first = aRequest();
	const claim = ownershipOf((await store.claim('claim', anOwner(), [first]))[0]);
	await settle('retryableFailure', claim);
	await changeRow(database, first.identity, `resolved_by = 'Ada', owner_token = 'fenced', ${RETRY_DUE}`);
	expect(await settle('completed', claim)).toBe('stale resolved');
	await store.claim('claim', anOwner(), [aCopyOf(first)]);
	expect(await settle('completed', claim)).toBe('stale taken_over');
});
