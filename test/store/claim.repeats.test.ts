import { randomUUID } from 'node:crypto';
import type { ClaimStore } from '../../store/claimStore';
import type { Operation } from '../../store/record';
import type { TestDatabase } from '../support/database';
import { LEASE_OVER } from '../support/timePassed';
import { aCopyOf, anIdentity, anOutcome, anOwner, aRequest, changeRow, inShort, ownershipOf, rowOf } from './support/claims';
import { shareStore } from './support/sharedStore';

/** Several items of one call: repeats of a delivery, order of answers, and rows that are none of their business. */

let database: TestDatabase;
let store: ClaimStore;
shareStore((shared) => ({ database, store } = shared));

test.each<[Operation, string]>([
	['claim', 'duplicate in_progress'],
	['receive', 'duplicate received'],
	['deduplicate', 'duplicate completed'],
])('%s: the first of a repeated delivery wins, the others meet its record', async (operation, repeat) => {
	const [a, b, c] = [aRequest(), aRequest(), aRequest()];
	const requests = [b, a, aCopyOf(a), c, aCopyOf(b), aCopyOf(a)];
	const answers = await store.claim(operation, anOwner(), requests);
	expect(answers.map(inShort)).toEqual(['new first_delivery', 'new first_delivery', repeat, 'new first_delivery', repeat, repeat]);
	answers.forEach((answer, index) => {
		expect(answer.verdict !== 'error' && answer.record.identity).toEqual(requests[index].identity);
	});
	expect(await rowOf(database, a.identity)).toMatchObject({ owner_token: a.ownerToken, version: 1 });
});

test('a repeat after a takeover meets the new owner', async () => {
	const first = aRequest({ whenLeaseExpires: 'takeOver' });
	await store.claim('claim', anOwner(), [first]);
	await changeRow(database, first.identity, LEASE_OVER);
	const answers = await store.claim('claim', anOwner(), [aCopyOf(first), aCopyOf(first)]);
	expect(answers.map(inShort)).toEqual(['new lease_expired', 'duplicate in_progress']);
});

test('a second call with the same tokens recognises every claim, and its repeats stay repeats', async () => {
	const owner = anOwner();
	const [a, b] = [aRequest(), aRequest()];
	const requests = [a, b, aCopyOf(a)];
	const first = await store.claim('claim', owner, requests);
	const second = await store.claim('claim', owner, requests);
	expect(second.map(inShort)).toEqual(first.map(inShort));
	expect(await rowOf(database, a.identity)).toMatchObject({ owner_token: a.ownerToken, version: 1, attempt: 1 });
});

test('a thousand copies in one call: one is new, and each of the others meets its record', async () => {
	const first = aRequest();
	const answers = await store.claim('claim', anOwner(), [first, ...Array.from({ length: 999 }, () => aCopyOf(first))]);
	expect(answers.map(inShort)).toEqual(['new first_delivery', ...Array<string>(999).fill('duplicate in_progress')]);
	expect(await rowOf(database, first.identity)).toMatchObject({ owner_token: first.ownerToken, version: 1, attempt: 1 });
});

test('copies that do not fit into one statement, with others before and behind: the first of them is new', async () => {
	const others = (start: string) => Array.from({ length: 400 }, () => aRequest({ identity: anIdentity({ deliveryId: `${start}-${randomUUID()}` }) }));
	const copied = aRequest({ identity: anIdentity({ deliveryId: `b-${randomUUID()}` }) });
	const copies = Array.from({ length: 1200 }, () => aCopyOf(copied));
	const answers = await store.claim('claim', anOwner(), [...others('a'), copied, ...copies, ...others('c')]);
	expect(answers.map(inShort)).toEqual([...Array<string>(401).fill('new first_delivery'), ...Array<string>(1200).fill('duplicate in_progress'), ...Array<string>(400).fill('new first_delivery')]);
	expect(await rowOf(database, copied.identity)).toMatchObject({ owner_token: copied.ownerToken, version: 1, attempt: 1 });
});

test('outcomes of one claim in one call: the first is recorded, equal ones are as asked, and what others created is kept, each once', async () => {
	const claimed = ownershipOf((await store.claim('claim', anOwner(), [aRequest()]))[0]);
	const references = ['lead-1', 'lead-1', 'lead-2', 'lead-3', 'lead-2'];
	const answers = await store.settle('completed', anOwner(), references.map((reference) => anOutcome(claimed, { reference })));
	expect(answers.map((answer) => (answer.verdict === 'stale' ? answer.reason : answer.verdict))).toEqual(['recorded', 'recorded', 'already_completed', 'already_completed', 'already_completed']);
	const { outcome_reference: kept, history } = await rowOf(database, claimed.identity);
	expect(kept).toBe('lead-1');
	expect(history.map(({ reference }) => reference)).toEqual([null, 'lead-1', 'lead-2', 'lead-3']);
});

test('a lease that is extended by every item of a call', async () => {
	const claimed = ownershipOf((await store.claim('claim', anOwner(), [aRequest()]))[0]);
	const answers = await store.settle('extendLease', anOwner(), Array.from({ length: 20 }, () => anOutcome(claimed, { leaseSeconds: 3600 })));
	expect(answers.map(({ verdict }) => verdict)).toEqual(Array(20).fill('recorded'));
});

test('rows of other identities are not touched', async () => {
	const bystander = aRequest({ whenLeaseExpires: 'takeOver' });
	await store.claim('claim', anOwner(), [bystander]);
	await changeRow(database, bystander.identity, LEASE_OVER);
	const before = await rowOf(database, bystander.identity);

	// Each differs from the bystander in one part, and is taken over.
	const neighbours = [{ deliveryId: 'other' }, { source: 'other' }, { account: 'other' }, { action: 'other' }].map((part) =>
		aRequest({ identity: { ...bystander.identity, ...part }, whenLeaseExpires: 'takeOver' }),
	);
	await store.claim('claim', anOwner(), neighbours);
	for (const { identity } of neighbours) await changeRow(database, identity, LEASE_OVER);
	const answers = await store.claim('claim', anOwner(), neighbours.map((request) => aCopyOf(request)));
	expect(answers.map(inShort)).toEqual(neighbours.map(() => 'new lease_expired'));
	expect(await rowOf(database, bystander.identity)).toEqual(before);
});

test('nothing asked, nothing answered', async () => {
	expect(await store.claim('claim', anOwner(), [])).toEqual([]);
	expect(await store.settle('completed', anOwner(), [])).toEqual([]);
	await expect(store.putBack(anOwner(), [], 'why')).resolves.toBeUndefined();
});
