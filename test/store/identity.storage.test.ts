import { randomBytes } from 'node:crypto';
import { idempotencyKey, MAX_DELIVERY_ID_BYTES, MAX_PART_BYTES, type Identity } from '../../store/identity';
import type { ClaimStore } from '../../store/claimStore';
import type { TestDatabase } from '../support/database';
import { aCopyOf, anIdentity, anOwner, aRequest, inShort, rowOf } from './support/claims';
import { shareStore } from './support/sharedStore';

/** Identities are compared byte for byte, by the database as well. */

let database: TestDatabase;
let store: ClaimStore;
shareStore((shared) => ({ database, store } = shared));

/** Claims these identities one after the other, each in an execution of its own. */
async function claimEach(identities: Identity[]): Promise<string[]> {
	const answers: string[] = [];
	for (const identity of identities) answers.push(...(await store.claim('claim', anOwner(), [aRequest({ identity })])).map(inShort));
	return answers;
}

const NEW = 'new first_delivery';

test.each<[string, Array<Partial<Identity>>]>([
	['a separator that moves between delivery ID and source', [{ deliveryId: 'a:b', source: 'c' }, { deliveryId: 'a', source: 'b:c' }]],
	['a separator that moves between account and action', [{ account: 'a', action: 'b,c' }, { account: 'a,b', action: 'c' }]],
	['quotes and brackets of the JSON between', [{ account: '","', action: 'x' }, { account: '', action: '","x' }, { account: '"', action: ',"x' }]],
	['a backslash and what it would escape', [{ deliveryId: 'a\\u0041' }, { deliveryId: 'aA' }, { deliveryId: 'a\\\\u0041' }]],
	['composed and decomposed letters', [{ deliveryId: 'caf\u00e9' }, { deliveryId: 'cafe\u0301' }]],
	['compatibility forms', [{ deliveryId: 'ﬁ' }, { deliveryId: 'fi' }, { deliveryId: 'Å' }, { deliveryId: '\u212b' }]],
	['upper and lower case', [{ deliveryId: 'EVT' }, { deliveryId: 'evt' }, { source: 'SHOP' }]],
	['leading zeros', [{ deliveryId: '7' }, { deliveryId: '07' }]],
	['characters that a language sorts as equal', [{ deliveryId: 'a\u00adb' }, { deliveryId: 'ab' }, { deliveryId: 'a\u200bb' }]],
	['empty account and empty action', [{ account: '', action: 'x' }, { account: 'x', action: '' }, { account: '', action: '' }]],
	['environments', [{ environment: 'live' }, { environment: 'test', deliveryId: 'only-tried-out' }, { environment: 'live', deliveryId: 'only-tried-out' }]],
	['wildcards of LIKE', [{ deliveryId: 'evt_1' }, { deliveryId: 'evtX1' }, { deliveryId: 'evt%' }]],
])('stay different: %s', async (what, parts) => {
	// The table keeps what other rows of this list claimed: the action keeps them apart.
	const identities = parts.map((part) => anIdentity({ deliveryId: 'evt', action: what, ...part }));
	expect(await claimEach(identities)).toEqual(identities.map(() => NEW));
	expect(new Set(identities.map(idempotencyKey)).size).toBe(identities.length);
});

test('the longest identity, in characters that do not compress, is stored, found and kept apart from its neighbour', async () => {
	// Repeated letters would be compressed in the index and hide its limit.
	const random = (bytes: number) => randomBytes(bytes / 2).toString('hex');
	const longest = { deliveryId: random(MAX_DELIVERY_ID_BYTES), source: random(MAX_PART_BYTES), account: random(MAX_PART_BYTES), action: random(MAX_PART_BYTES) };
	const neighbour = { ...longest, deliveryId: `${longest.deliveryId.slice(0, -1)}g` };
	expect(await claimEach([anIdentity(longest), anIdentity(neighbour), anIdentity(longest)])).toEqual([NEW, NEW, 'duplicate in_progress']);
});

test('the longest identity in four-byte characters likewise', async () => {
	const random = (bytes: number) => Array.from(randomBytes(bytes / 4), (byte) => String.fromCodePoint(0x1f300 + byte)).join('');
	const identity = anIdentity({
		deliveryId: random(MAX_DELIVERY_ID_BYTES),
		source: random(MAX_PART_BYTES),
		account: random(MAX_PART_BYTES),
		action: random(MAX_PART_BYTES),
	});
	expect(await claimEach([identity, identity])).toEqual([NEW, 'duplicate in_progress']);
	expect((await rowOf(database, identity)).delivery_id).toBe(identity.deliveryId);
});

test('each identity of one batch has its own row, however alike they look', async () => {
	const ids = ['é', 'e\u0301', 'É', 'e', '"', '\\', '\\"', '$1', "'", '{}', ':"table"', '😀', '漢字'];
	const requests = ids.map((deliveryId) => aRequest({ identity: anIdentity({ deliveryId, action: 'batch' }) }));
	expect((await store.claim('claim', anOwner(), requests)).map(inShort)).toEqual(ids.map(() => NEW));
	const again = await store.claim('claim', anOwner(), requests.map((request) => aCopyOf(request)));
	expect(again.map((answer) => (answer.verdict === 'duplicate' ? answer.record.identity.deliveryId : inShort(answer)))).toEqual(ids);
});
