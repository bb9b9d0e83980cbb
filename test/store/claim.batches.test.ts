import { openClaimStore, type ClaimStore } from '../../store/claimStore';
import { MAX_PAYLOAD_BYTES } from '../../store/payload';
import { countBy } from '../support/counting';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { LEASE_OVER } from '../support/timePassed';
import { aCopyOf, anIdentity, anOutcome, anOwner, aRequest, changeRow, inShort, ownershipOf, settingsFor } from './support/claims';

/** Any number of items in one call, several per statement, each with a verdict of its own. */

let database: TestDatabase;
let store: ClaimStore;

beforeEach(async () => {
	database = await createTestDatabase();
	store = openClaimStore(settingsFor(database));
	await store.claim('claim', anOwner(), [aRequest({ identity: anIdentity({ source: 'warm-up' }) })]);
});
afterEach(async () => {
	await store.close();
	await database.drop();
});

/** How many statements inserted what is in the table: each is a transaction of its own. */
async function insertsSent(): Promise<number> {
	const [{ sent }] = await database.query<{ sent: number }>(`SELECT count(DISTINCT xmin::text)::int AS sent FROM idempotent_claims WHERE source <> 'warm-up'`);
	return sent;
}

test('20,000 items in one call, claimed, met again, and completed', async () => {
	const requests = Array.from({ length: 20_000 }, () => aRequest());
	const answers = await store.claim('claim', anOwner(), requests);
	expect(countBy(answers.map(inShort))).toEqual({ 'new first_delivery': 20_000 });
	expect(answers.every((answer, index) => answer.verdict === 'new' && answer.record.ownerToken === requests[index].ownerToken)).toBe(true);
	expect(await insertsSent()).toBe(40);

	const again = await store.claim('claim', anOwner(), requests.map((request) => aCopyOf(request)));
	expect(countBy(again.map(inShort))).toEqual({ 'duplicate in_progress': 20_000 });

	const outcomes = answers.map((answer, index) => anOutcome(ownershipOf(answer), { reference: `lead-${index}` }));
	const recorded = await store.settle('completed', anOwner(), outcomes);
	expect(recorded.every((answer, index) => answer.verdict === 'recorded' && answer.record.outcome?.reference === `lead-${index}`)).toBe(true);
});

test('a batch of every kind of record keeps its order', async () => {
	const kinds = ['unseen', 'done', 'expired', 'running'] as const;
	const requests = Array.from({ length: 100 }, (_, index) => ({ kind: kinds[index % 4], request: aRequest({ whenLeaseExpires: 'takeOver' }) }));
	const seen = requests.filter(({ kind }) => kind !== 'unseen');
	const first = await store.claim('claim', anOwner(), seen.map(({ request }) => request));
	for (const [index, { kind, request }] of seen.entries()) {
		if (kind === 'done') await store.settle('completed', anOwner(), [anOutcome(ownershipOf(first[index]))]);
		if (kind === 'expired') await changeRow(database, request.identity, LEASE_OVER);
	}
	const answers = await store.claim('claim', anOwner(), requests.map(({ request }) => aCopyOf(request)));
	const expected = { unseen: 'new first_delivery', done: 'duplicate completed', expired: 'new lease_expired', running: 'duplicate in_progress' };
	expect(answers.map(inShort)).toEqual(requests.map(({ kind }) => expected[kind]));
});

test('large payloads are spread over statements, and arrive whole', async () => {
	const json = JSON.stringify({ text: 'x'.repeat(MAX_PAYLOAD_BYTES - 11) });
	expect(Buffer.byteLength(json)).toBe(MAX_PAYLOAD_BYTES);
	const requests = Array.from({ length: 10 }, () => aRequest({ payload: { json, complete: true } }));
	expect(countBy((await store.claim('claim', anOwner(), requests)).map(inShort))).toEqual({ 'new first_delivery': 10 });
	expect(await insertsSent()).toBe(3);
	expect(await database.query(`SELECT DISTINCT length(payload::text) AS length FROM idempotent_claims WHERE source <> 'warm-up'`)).toEqual([{ length: MAX_PAYLOAD_BYTES }]);
});

test('large results are spread over statements', async () => {
	const result = JSON.stringify('y'.repeat(60_000));
	const requests = Array.from({ length: 200 }, () => aRequest());
	const outcomes = (await store.claim('claim', anOwner(), requests)).map((answer) => anOutcome(ownershipOf(answer), { result }));
	expect(countBy((await store.settle('completed', anOwner(), outcomes)).map(({ verdict }) => verdict))).toEqual({ recorded: 200 });
	expect(await insertsSent()).toBe(3);
});

// The server gives up on it; only it knows that before.
const TOO_DEEP = '['.repeat(100_000) + ']'.repeat(100_000);

test('one item that the server refuses has its own verdict', async () => {
	const requests = Array.from({ length: 50 }, (_, index) => aRequest(index === 17 ? { payload: { json: TOO_DEEP, complete: true } } : {}));
	const answers = await store.claim('claim', anOwner(), requests);
	expect(answers.map(inShort)).toEqual(requests.map((_, index) => (index === 17 ? 'error unexpected' : 'new first_delivery')));
	expect(answers[17]).toMatchObject({ error: { sqlState: '54001', retryable: false } });
	const [{ stored }] = await database.query<{ stored: number }>(`SELECT count(*)::int AS stored FROM idempotent_claims WHERE source <> 'warm-up'`);
	expect(stored).toBe(49);
});

test('one outcome that the server refuses has its own verdict', async () => {
	const claims = (await store.claim('claim', anOwner(), [aRequest(), aRequest(), aRequest()])).map(ownershipOf);
	const outcomes = claims.map((claim, index) => anOutcome(claim, { result: index === 1 ? TOO_DEEP : null }));
	const answers = await store.settle('completed', anOwner(), outcomes);
	expect(answers.map(({ verdict }) => verdict)).toEqual(['recorded', 'error', 'recorded']);
});

test('two calls with the same 2,000 deliveries in opposite orders at once: one winner each', async () => {
	const requests = Array.from({ length: 2000 }, () => aRequest());
	const copies = [...requests].reverse().map((request) => aCopyOf(request));
	const answers = (await Promise.all([store.claim('claim', anOwner(), requests), store.claim('claim', anOwner(), copies)])).flat();
	expect(countBy(answers.map(inShort))).toEqual({ 'new first_delivery': 2000, 'duplicate in_progress': 2000 });
});

// Updates lock rows in the order in which they find them: where that makes a deadlock, the statement is repeated.
test('two calls take over the same 1,000 expired claims at once: one winner each', async () => {
	const requests = Array.from({ length: 1000 }, () => aRequest({ whenLeaseExpires: 'takeOver' }));
	await store.claim('claim', anOwner(), requests);
	await database.query(`UPDATE idempotent_claims SET ${LEASE_OVER} WHERE source <> 'warm-up'`);
	const copies = () => requests.map((request) => aCopyOf(request));
	const answers = (await Promise.all([store.claim('claim', anOwner(), copies()), store.claim('claim', anOwner(), copies().reverse())])).flat();
	expect(countBy(answers.map(inShort))).toEqual({ 'new lease_expired': 1000, 'duplicate in_progress': 1000 });
});
