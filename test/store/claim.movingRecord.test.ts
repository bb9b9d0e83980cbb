import { openClaimStore, type ClaimStore } from '../../store/claimStore';
import type { ClaimRequest } from '../../store/request';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { startProxy, type HeldMessage, type Proxy } from '../support/proxy';
import { LEASE_OVER, RETRY_DUE } from '../support/timePassed';
import { aCopyOf, anIdentity, anOutcome, anOwner, aRequest, changeRow, inShort, ownershipOf, rowOf, settingsFor } from './support/claims';

/**
 * A record moves between being read and being written: the UPDATE repeats what was seen, so whoever was faster
 * wins. A proxy holds the UPDATE back meanwhile. (A row lock would not do: the INSERT before it waits for that.)
 */

let database: TestDatabase;
let proxy: Proxy;
/** Its statements can be held back. */
let slow: ClaimStore;
/** Its cannot. */
let fast: ClaimStore;

beforeAll(async () => {
	database = await createTestDatabase();
	fast = openClaimStore(settingsFor(database));
	await fast.claim('claim', anOwner(), [aRequest()]);
});
afterAll(async () => {
	await fast.close();
	await database.drop();
});
beforeEach(async () => {
	proxy = await startProxy(database);
	slow = openClaimStore(settingsFor(database, { host: proxy.host, port: proxy.port, timeoutMs: 60_000 }));
});
afterEach(async () => {
	await slow.close();
	await proxy.close();
});

/** Until the UPDATE is held back; an answer without one fails the test instead of letting it wait. */
async function reached(update: HeldMessage, answers: Promise<object[]>): Promise<void> {
	const early = await Promise.race([update.happened, answers]);
	if (early) throw new Error(`Answered before the UPDATE: ${JSON.stringify(early)}`);
}

/** What `request` is answered when `move` happens after its record was read and before it is written. */
async function claimWhile(request: ClaimRequest, move: () => Promise<unknown>, owner = anOwner()): Promise<string[]> {
	const update = proxy.hold('UPDATE "');
	const answers = slow.claim('claim', owner, [request]);
	await reached(update, answers);
	await move();
	update.release();
	return (await answers).map(inShort);
}

async function expired(changes: Partial<ClaimRequest>): Promise<ClaimRequest> {
	const first = aRequest(changes);
	await fast.claim('claim', anOwner(), [first]);
	await changeRow(database, first.identity, LEASE_OVER);
	return first;
}

describe('the owner extends its lease', () => {
	test.each<[string, Partial<ClaimRequest>]>([
		['before it is taken over: it is not evicted', { whenLeaseExpires: 'takeOver' }],
		['before it is called uncertain: it is not', { whenLeaseExpires: 'outcomeUncertain' }],
		['before it is given up: it is not', { whenLeaseExpires: 'takeOver', maxAttempts: 1 }],
	])('%s', async (_what, changes) => {
		const first = await expired(changes);
		const ownership = { identity: first.identity, ownerToken: first.ownerToken, version: 1 };
		expect(await claimWhile(aCopyOf(first), async () => await fast.settle('extendLease', anOwner(), [anOutcome(ownership)]))).toEqual(['duplicate in_progress']);
		expect(await rowOf(database, first.identity)).toMatchObject({ owner_token: first.ownerToken, version: 1, state: 'processing' });
	});
});

test('the owner completes the claim before it is taken over', async () => {
	const first = await expired({ whenLeaseExpires: 'takeOver' });
	const ownership = { identity: first.identity, ownerToken: first.ownerToken, version: 1 };
	expect(await claimWhile(aCopyOf(first), async () => await fast.settle('completed', anOwner(), [anOutcome(ownership)]))).toEqual(['duplicate completed']);
});

test('another execution takes the claim over first', async () => {
	const first = await expired({ whenLeaseExpires: 'takeOver' });
	const winner = aCopyOf(first);
	expect(await claimWhile(aCopyOf(first), async () => await fast.claim('claim', anOwner(), [winner]))).toEqual(['duplicate in_progress']);
	expect(await rowOf(database, first.identity)).toMatchObject({ owner_token: winner.ownerToken, version: 2, attempt: 2 });
});

// State and lease look as before; token and version tell that the settings that allowed the takeover were another's.
test('another execution takes it over first, forbids takeovers, and its lease ends as well', async () => {
	const first = await expired({ whenLeaseExpires: 'takeOver' });
	const answers = await claimWhile(aCopyOf(first), async () => {
		await fast.claim('claim', anOwner(), [aCopyOf(first, { whenLeaseExpires: 'outcomeUncertain' })]);
		await changeRow(database, first.identity, LEASE_OVER);
	});
	expect(answers).toEqual(['duplicate outcome_uncertain']);
	expect(await rowOf(database, first.identity)).toMatchObject({ version: 2, attempt: 2, state: 'outcome_uncertain' });
});

test('another execution begins a stored delivery first', async () => {
	const first = aRequest();
	await fast.claim('receive', anOwner(), [first]);
	expect(await claimWhile(aCopyOf(first), async () => await fast.claim('claim', anOwner(), [aCopyOf(first)]))).toEqual(['duplicate in_progress']);
	expect(await rowOf(database, first.identity)).toMatchObject({ version: 2, attempt: 1 });
});

test('a retry that was due is put off', async () => {
	const first = aRequest();
	const ownership = ownershipOf((await fast.claim('claim', anOwner(), [first]))[0]);
	await fast.settle('retryableFailure', anOwner(), [anOutcome(ownership, { retryAfterSeconds: 0 })]);
	expect(await claimWhile(aCopyOf(first), async () => await changeRow(database, first.identity, `retry_at = now() + interval '1 hour'`))).toEqual(['duplicate retry_pending']);
});

test('an own claim that is about to be recognised is taken over: it is a duplicate, and nothing is stolen back', async () => {
	const owner = anOwner();
	const first = aRequest({ whenLeaseExpires: 'takeOver' });
	await fast.claim('claim', owner, [first]);
	await changeRow(database, first.identity, LEASE_OVER);
	const winner = aCopyOf(first);
	expect(await claimWhile(first, async () => await fast.claim('claim', anOwner(), [winner]), owner)).toEqual(['duplicate in_progress']);
	expect(await rowOf(database, first.identity)).toMatchObject({ owner_token: winner.ownerToken, version: 2 });
});

// Without the state in its condition, the renewal would open a finished claim again and repeat its action.
test.each([
	['completed', 'duplicate completed'],
	['needsReview', 'duplicate needs_review'],
	['retryableFailure', 'duplicate retry_pending'],
] as const)('an own claim that is about to be recognised is settled as %s: %s', async (outcome, expected) => {
	const owner = anOwner();
	const first = aRequest();
	const ownership = ownershipOf((await fast.claim('claim', owner, [first]))[0]);
	expect(await claimWhile(first, async () => await fast.settle(outcome, owner, [anOutcome(ownership)]), owner)).toEqual([expected]);
});

test('the record is purged: the claim is new', async () => {
	const first = await expired({ whenLeaseExpires: 'takeOver' });
	const purge = async () => await database.query('DELETE FROM idempotent_claims WHERE delivery_id = $1', [first.identity.deliveryId]);
	expect(await claimWhile(aCopyOf(first), purge)).toEqual(['new first_delivery']);
});

test('two manual runs that both begin anew: the later write owns the claim, the earlier one is fenced off', async () => {
	const first = aRequest({ identity: anIdentity({ environment: 'test' }), takenAnewEachRun: true });
	await fast.claim('claim', anOwner(), [first]);
	const [earlier, later] = [aCopyOf(first), aCopyOf(first)];
	expect(await claimWhile(later, async () => await fast.claim('claim', anOwner(), [earlier]))).toEqual(['new first_delivery']);
	expect(await rowOf(database, first.identity)).toMatchObject({ owner_token: later.ownerToken, version: 3, attempt: 1 });
	const fenced = { identity: first.identity, ownerToken: earlier.ownerToken, version: 2 };
	expect(await fast.settle('completed', anOwner(), [anOutcome(fenced)])).toMatchObject([{ verdict: 'stale', reason: 'taken_over' }]);
});

test('a record that moves each time: busy after a bounded number of rounds, nothing claimed', async () => {
	const first = await expired({ whenLeaseExpires: 'takeOver' });
	let update = proxy.hold('UPDATE "');
	const answers = slow.claim('claim', anOwner(), [aCopyOf(first)]);
	// Looked at once and, by the contract, five times again; a further try would find the record at rest and win.
	for (let round = 1; round <= 6; round++) {
		await reached(update, answers);
		await changeRow(database, first.identity, `version = version + 1`);
		update.release();
		if (round < 6) update = proxy.hold('UPDATE "');
	}
	expect((await answers).map(inShort)).toEqual(['error store_busy']);
	expect((await rowOf(database, first.identity)).owner_token).toBe(first.ownerToken);
});

test('our own record that moves each time, after an answer was lost: in doubt, not certainly unclaimed', async () => {
	const request = aRequest();
	proxy.loseAnswerTo('INSERT INTO');
	let update = proxy.hold('UPDATE "');
	const answers = slow.claim('claim', anOwner(), [request]);
	for (let round = 1; round <= 6; round++) {
		await reached(update, answers);
		await changeRow(database, request.identity, `version = version + 1`);
		update.release();
		if (round < 6) update = proxy.hold('UPDATE "');
	}
	expect((await answers).map(inShort)).toEqual(['error outcome_unknown']);
});

describe('an outcome', () => {
	async function settleWhile(request: ClaimRequest, move: () => Promise<unknown>): Promise<object[]> {
		const ownership = ownershipOf((await fast.claim('claim', anOwner(), [request]))[0]);
		const update = proxy.hold('UPDATE "');
		const answers = slow.settle('completed', anOwner(), [anOutcome(ownership, { reference: 'lead-1' })]);
		await reached(update, answers);
		await move();
		update.release();
		return await answers;
	}

	test('comes too late: another owner has the claim', async () => {
		const request = aRequest({ whenLeaseExpires: 'takeOver' });
		const answers = await settleWhile(request, async () => {
			await changeRow(database, request.identity, LEASE_OVER);
			await fast.claim('claim', anOwner(), [aCopyOf(request)]);
		});
		expect(answers).toMatchObject([{ verdict: 'stale', reason: 'taken_over' }]);
		expect(await rowOf(database, request.identity)).toMatchObject({ state: 'processing', outcome_reference: null });
	});

	test('comes in time: the lease ended and nobody took the claim', async () => {
		const request = aRequest();
		const answers = await settleWhile(request, async () => {
			await changeRow(database, request.identity, LEASE_OVER);
			await fast.claim('claim', anOwner(), [aCopyOf(request)]);
		});
		expect(answers).toMatchObject([{ verdict: 'recorded', record: { state: 'completed' } }]);
	});

	test('comes after the claim failed and is due again: it still counts', async () => {
		const request = aRequest();
		const answers = await settleWhile(request, async () => await changeRow(database, request.identity, `state = 'retryable_failure', lease_expires_at = NULL, ${RETRY_DUE}`));
		expect(answers).toMatchObject([{ verdict: 'recorded', record: { state: 'completed' } }]);
	});
});
