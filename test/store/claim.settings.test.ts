import type { ClaimStore } from '../../store/claimStore';
import { fingerprintOf } from '../../store/payload';
import type { ClaimRequest } from '../../store/request';
import type { TestDatabase } from '../support/database';
import { LEASE_OVER } from '../support/timePassed';
import { aCopyOf, anOutcome, anOwner, aRequest, changeRow, inShort, ownershipOf, rowOf } from './support/claims';
import { shareStore } from './support/sharedStore';

/** Whose settings count, what a changed payload means, and what is kept of a payload. */

let database: TestDatabase;
let store: ClaimStore;
shareStore((shared) => ({ database, store } = shared));

const claim = async (request: ClaimRequest) => (await store.claim('claim', anOwner(), [request]))[0];

describe('the settings of the current ownership count', () => {
	test('a redelivery cannot loosen what happens when the lease expires', async () => {
		const first = aRequest({ whenLeaseExpires: 'outcomeUncertain' });
		await claim(first);
		await changeRow(database, first.identity, LEASE_OVER);
		expect(inShort(await claim(aCopyOf(first, { whenLeaseExpires: 'takeOver' })))).toBe('duplicate outcome_uncertain');
		expect(await rowOf(database, first.identity)).toMatchObject({ when_lease_expires: 'outcomeUncertain' });
	});

	test('nor tighten it', async () => {
		const first = aRequest({ whenLeaseExpires: 'takeOver' });
		await claim(first);
		await changeRow(database, first.identity, LEASE_OVER);
		expect(inShort(await claim(aCopyOf(first, { whenLeaseExpires: 'outcomeUncertain' })))).toBe('new lease_expired');
	});

	test('a redelivery cannot raise the number of attempts', async () => {
		const first = aRequest({ whenLeaseExpires: 'takeOver', maxAttempts: 1 });
		await claim(first);
		await changeRow(database, first.identity, LEASE_OVER);
		expect(inShort(await claim(aCopyOf(first, { maxAttempts: 100 })))).toBe('duplicate needs_review');
	});

	test('nor shorten or prolong a running lease', async () => {
		const first = aRequest({ leaseSeconds: 300 });
		await claim(first);
		const before = await rowOf(database, first.identity);
		await claim(aCopyOf(first, { leaseSeconds: 1 }));
		await claim(aCopyOf(first, { leaseSeconds: 86_400 }));
		expect(await rowOf(database, first.identity)).toEqual(before);
	});

	test('a new ownership writes its own', async () => {
		const first = aRequest({ whenLeaseExpires: 'takeOver' });
		await claim(first);
		await changeRow(database, first.identity, LEASE_OVER);
		await claim(aCopyOf(first, { whenLeaseExpires: 'outcomeUncertain', maxAttempts: 9, leaseSeconds: 60, retentionDays: 90 }));
		expect(await rowOf(database, first.identity)).toMatchObject({ when_lease_expires: 'outcomeUncertain', max_attempts: 9, lease_seconds: 60, retention_days: 90 });
	});

	test('the retention of the ownership that finished counts', async () => {
		const first = aRequest({ retentionDays: 3 });
		const ownership = ownershipOf(await claim(first));
		await store.settle('completed', anOwner(), [anOutcome(ownership)]);
		await claim(aCopyOf(first, { retentionDays: 300 }));
		const row = await rowOf(database, first.identity);
		expect(Number(row.purge_after) - Number(row.outcome_recorded_at)).toBeCloseTo(3 * 86_400_000, -3);
	});
});

describe('a delivery whose payload changed', () => {
	const fingerprints = { first: fingerprintOf({ total: 1 }), same: fingerprintOf({ total: 1 }), changed: fingerprintOf({ total: 2 }) };

	test.each([
		['knownDuplicate', fingerprints.same, 'duplicate in_progress', false],
		['knownDuplicate', fingerprints.changed, 'duplicate in_progress', true],
		['knownDuplicate', null, 'duplicate in_progress', null],
		['operationalError', fingerprints.same, 'duplicate in_progress', false],
		['operationalError', fingerprints.changed, 'error payload_mismatch', true],
		['operationalError', null, 'duplicate in_progress', null],
	] as const)('%s, fingerprint %s: %s', async (payloadMismatch, fingerprint, expected, payloadChanged) => {
		const first = aRequest({ fingerprint: fingerprints.first, payloadMismatch });
		await claim(first);
		const before = await rowOf(database, first.identity);
		const answer = await claim(aCopyOf(first, { fingerprint }));
		expect(inShort(answer)).toBe(expected);
		expect(answer).toMatchObject({ payloadChanged, record: { state: 'processing' } });
		expect(await rowOf(database, first.identity)).toEqual(before);
	});

	test('a first delivery without a fingerprint is never a mismatch', async () => {
		const first = aRequest({ payloadMismatch: 'operationalError' });
		await claim(first);
		expect(await claim(aCopyOf(first, { fingerprint: fingerprints.changed }))).toMatchObject({ verdict: 'duplicate', payloadChanged: null });
	});

	// Decided before any write: an expired lease is not even marked.
	test.each(['takeOver', 'outcomeUncertain'] as const)('as an error it writes nothing, also over an expired lease (%s)', async (whenLeaseExpires) => {
		const first = aRequest({ fingerprint: fingerprints.first, payloadMismatch: 'operationalError', whenLeaseExpires });
		await claim(first);
		await changeRow(database, first.identity, LEASE_OVER);
		const before = await rowOf(database, first.identity);
		expect(inShort(await claim(aCopyOf(first, { fingerprint: fingerprints.changed })))).toBe('error payload_mismatch');
		expect(await rowOf(database, first.identity)).toEqual(before);
	});

	test('otherwise it may take the claim over, and is told', async () => {
		const first = aRequest({ fingerprint: fingerprints.first, whenLeaseExpires: 'takeOver' });
		await claim(first);
		await changeRow(database, first.identity, LEASE_OVER);
		expect(await claim(aCopyOf(first, { fingerprint: fingerprints.changed }))).toMatchObject({ verdict: 'new', reason: 'lease_expired', payloadChanged: true });
		// What the first delivery said stays the measure.
		expect((await rowOf(database, first.identity)).fingerprint).toBe(fingerprints.first);
	});

	test('one mismatch in a batch leaves its neighbours alone', async () => {
		const first = aRequest({ fingerprint: fingerprints.first, payloadMismatch: 'operationalError' });
		await claim(first);
		const answers = await store.claim('claim', anOwner(), [aRequest(), aCopyOf(first, { fingerprint: fingerprints.changed }), aRequest()]);
		expect(answers.map(inShort)).toEqual(['new first_delivery', 'error payload_mismatch', 'new first_delivery']);
	});
});

describe('the payload', () => {
	const complete = { json: '{"lead":"Ada"}', complete: true };

	test('is kept until the claim is finished', async () => {
		const request = aRequest({ payload: complete });
		const ownership = ownershipOf(await claim(request));
		expect(await rowOf(database, request.identity)).toMatchObject({ payload: { lead: 'Ada' }, payload_complete: true });
		await store.settle('completed', anOwner(), [anOutcome(ownership)]);
		expect(await rowOf(database, request.identity)).toMatchObject({ payload: null, payload_complete: false });
	});

	test.each(['retryableFailure', 'outcomeUncertain', 'needsReview'] as const)('survives %s', async (outcome) => {
		const request = aRequest({ payload: complete });
		await store.settle(outcome, anOwner(), [anOutcome(ownershipOf(await claim(request)))]);
		expect(await rowOf(database, request.identity)).toMatchObject({ payload: { lead: 'Ada' }, payload_complete: true });
	});

	test('of the first delivery stays when the claim is taken over', async () => {
		const first = aRequest({ payload: complete });
		await store.claim('receive', anOwner(), [first]);
		expect(inShort(await claim(aCopyOf(first, { payload: { json: '{"lead":"Grace"}', complete: true } })))).toBe('new received');
		expect(await rowOf(database, first.identity)).toMatchObject({ payload: { lead: 'Ada' }, payload_complete: true });
	});

	test('of a later delivery replaces an incomplete one', async () => {
		const first = aRequest({ payload: { json: '{"lead":"A"}', complete: false } });
		await store.claim('receive', anOwner(), [first]);
		await claim(aCopyOf(first, { payload: complete }));
		expect(await rowOf(database, first.identity)).toMatchObject({ payload: { lead: 'Ada' }, payload_complete: true });
	});

	test('is not lost to a later delivery that has none', async () => {
		const first = aRequest({ payload: complete });
		await store.claim('receive', anOwner(), [first]);
		await claim(aCopyOf(first));
		expect(await rowOf(database, first.identity)).toMatchObject({ payload: { lead: 'Ada' }, payload_complete: true });
	});

	// A finished claim needs no payload, however it was finished.
	test('is dropped when deduplicate finishes a stored delivery', async () => {
		const first = aRequest({ payload: complete });
		await store.claim('receive', anOwner(), [first]);
		const answers = await store.claim('deduplicate', anOwner(), [aCopyOf(first)]);
		expect(answers.map(inShort)).toEqual(['new received']);
		expect(await rowOf(database, first.identity)).toMatchObject({ state: 'completed', payload: null, payload_complete: false });
	});

	// jsonb would refuse the first and the second, and reorder the third.
	test.each([`{"text":"a\\u0000b"}`, `{"text":"\\ud83d"}`, `{"b":1,"a":1,"a":2, "big":12345678901234567890.10}`])('is kept as it was sent: %s', async (json) => {
		const request = aRequest({ payload: { json, complete: true } });
		expect(inShort(await claim(request))).toBe('new first_delivery');
		const [row] = await database.query<{ payload: string }>('SELECT payload::text AS payload FROM idempotent_claims WHERE delivery_id = $1', [request.identity.deliveryId]);
		expect(row.payload).toBe(json);
	});
});
