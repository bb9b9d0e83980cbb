import { openClaimStore, type ClaimStore } from '../../store/claimStore';
import type { Operation } from '../../store/record';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { aCopyOf, anOwner, aRequest, changeRow, inShort, LEASE_OVER, rowOf, settingsFor } from './support/claims';

/** Several items of one call: repeats of a delivery, order of answers, and rows that are none of their business. */

let database: TestDatabase;
let store: ClaimStore;

beforeAll(async () => {
	database = await createTestDatabase();
	store = openClaimStore(settingsFor(database));
});
afterAll(async () => {
	await store.close();
	await database.drop();
});

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
