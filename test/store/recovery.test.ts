import { randomUUID } from 'node:crypto';
import { openClaimStore, type ClaimStore } from '../../store/claimStore';
import type { OutcomeKind } from '../../store/decisions';
import type { StoredPayload } from '../../store/payload';
import type { Owner } from '../../store/record';
import type { ClaimRequest } from '../../store/request';
import type { RecoveredClaim, RecoveryRequest } from '../../store/statements/takeDueClaims';
import type { TestDatabase } from '../support/database';
import { startProxy } from '../support/proxy';
import { LEASE_OVER, RETRY_DUE } from '../support/timePassed';
import { aCopyOf, anIdentity, anOutcome, anOwner, aRequest, changeRow, inShort, ownershipOf, rowOf, settingsFor } from './support/claims';
import { shareStore } from './support/sharedStore';

/** What the recovery trigger takes, what it leaves, and what becomes of it. */

let database: TestDatabase;
let store: ClaimStore;
/** Of one test, so that no test takes another's claims. */
let action: string;

shareStore((shared) => ({ database, store } = shared));
beforeEach(() => (action = randomUUID()));

const poller: Owner = { instanceId: 'instance', workflowId: 'recovery', executionId: '', nodeId: 'trigger', nodeName: 'Claim Recovery Trigger' };
const KEPT: StoredPayload = { json: '{"lead":1}', complete: true };

const delivery = (changes: Partial<ClaimRequest> = {}) => aRequest({ identity: anIdentity({ action }), payload: KEPT, ...changes });

async function poll(changes: Partial<RecoveryRequest> = {}, by = store): Promise<RecoveredClaim[]> {
	const recover = ['received', 'retryableFailures', 'expiredLeases', 'uncertainOutcomes'] as const;
	return await by.takeDue(poller, { source: 'shop', action, environment: 'live', recover, limit: 20, leaseSeconds: 60, pollId: randomUUID(), ...changes });
}

/** A claim in one state, as its owner left it. */
async function make(how: 'received' | OutcomeKind | 'processing', request = delivery(), changes?: string): Promise<ClaimRequest> {
	const [answer] = await store.claim(how === 'received' ? 'receive' : 'claim', anOwner(), [request]);
	if (how !== 'received' && how !== 'processing') await store.settle(how, anOwner(), [anOutcome(ownershipOf(answer), { reason: 'because' })]);
	if (changes) await changeRow(database, request.identity, changes);
	return request;
}

const inWords = ({ course, record }: RecoveredClaim) => `${course}: ${record.state} ${record.claimReason}, version ${record.version}, attempt ${record.attempt}`;

describe('is taken', () => {
	test.each<[string, () => Promise<ClaimRequest>, string]>([
		['a stored delivery', async () => await make('received'), 'ready: processing received, version 2, attempt 1'],
		['a retryable failure that is due', async () => await make('retryableFailure', delivery(), RETRY_DUE), 'ready: processing retry, version 2, attempt 2'],
		['a lease that is over, where work is taken over', async () => await make('processing', delivery({ whenLeaseExpires: 'takeOver' }), LEASE_OVER), 'ready: processing lease_expired, version 2, attempt 2'],
		['a lease that is over, where the outcome is uncertain then', async () => await make('processing', delivery(), LEASE_OVER), 'reconcile: outcome_uncertain first_delivery, version 2, attempt 1'],
		['an uncertain outcome', async () => await make('outcomeUncertain'), 'reconcile: outcome_uncertain first_delivery, version 2, attempt 1'],
		['an uncertain outcome without a payload: it is only looked up', async () => await make('outcomeUncertain', delivery({ payload: { json: null, complete: false } })), 'reconcile: outcome_uncertain first_delivery, version 2, attempt 1'],
	])('%s', async (_what, arrange, expected) => {
		const request = await arrange();
		const taken = await poll();
		expect(taken.map(inWords)).toEqual([expected]);
		expect(taken[0].record.identity).toEqual(request.identity);
		expect(taken[0].payload).toEqual(request.payload.json === null ? null : { lead: 1 });
		const row = await rowOf(database, request.identity);
		expect(row.owner_token).toBe(taken[0].record.ownerToken);
		expect(row.lease_expires_at).not.toBeNull();
		// Under its lease nobody else gets it.
		expect(await poll()).toEqual([]);
	});
});

describe('is left alone', () => {
	test.each<[string, () => Promise<ClaimRequest>]>([
		['work under a running lease', async () => await make('processing')],
		['a retryable failure that is not due', async () => await make('retryableFailure')],
		['what is completed', async () => await make('completed')],
		['what waits for a person', async () => await make('needsReview')],
		['a stored delivery whose payload is incomplete', async () => await make('received', delivery({ payload: { json: null, complete: false } }))],
		['another action', async () => await make('received', delivery({ identity: anIdentity({ action: 'other' }) }))],
		['another source', async () => await make('received', delivery({ identity: anIdentity({ action, source: 'other' }) }))],
		['a test claim', async () => await make('received', delivery({ identity: anIdentity({ action, environment: 'test' }) }))],
	])('%s', async (_what, arrange) => {
		const request = await arrange();
		const before = await rowOf(database, request.identity);
		expect(await poll()).toEqual([]);
		expect(await rowOf(database, request.identity)).toEqual(before);
	});

	test('a kind that was not asked for', async () => {
		await make('received');
		await make('outcomeUncertain');
		expect((await poll({ recover: ['uncertainOutcomes'] })).map(({ course }) => course)).toEqual(['reconcile']);
		expect((await poll({ recover: ['expiredLeases', 'retryableFailures'] })).map(({ course }) => course)).toEqual([]);
		expect((await poll({ recover: ['received'] })).map(({ course }) => course)).toEqual(['ready']);
		expect(await poll({ recover: [] })).toEqual([]);
	});
});

test('oldest first, at most as many as asked for', async () => {
	const requests = [];
	for (let age = 1; age <= 5; age++) requests.push(await make('received', delivery(), `first_seen_at = now() - interval '${age} hours'`));
	const taken = [...(await poll({ limit: 2 })), ...(await poll({ limit: 2 })), ...(await poll({ limit: 2 }))];
	expect(taken.map(({ record }) => record.identity.deliveryId)).toEqual(requests.reverse().map(({ identity }) => identity.deliveryId));
});

test.each<[string, () => Promise<ClaimRequest>]>([
	['a retryable failure that is due', async () => await make('retryableFailure', delivery({ maxAttempts: 2 }), `${RETRY_DUE}, attempt = 2`)],
	['a lease that is over, where work is taken over', async () => await make('processing', delivery({ whenLeaseExpires: 'takeOver', maxAttempts: 1 }), LEASE_OVER)],
])('with its attempts used up, %s goes before a person', async (_what, arrange) => {
	const request = await arrange();
	const before = await rowOf(database, request.identity);
	expect(await poll()).toEqual([]);
	const row = await rowOf(database, request.identity);
	expect(row).toMatchObject({ state: 'needs_review', version: 1, owner_token: before.owner_token, lease_expires_at: null, retry_at: null });
	expect(row.history.at(-1)).toMatchObject({ state: 'needs_review', reason: 'attempts_used_up' });
});

test('a reconciler that dies leaves the claim uncertain; after as many looks as attempts it goes before a person', async () => {
	const request = await make('outcomeUncertain', delivery({ maxAttempts: 2 }));
	for (const look of [1, 2]) {
		expect((await poll()).map(inWords)).toEqual([`reconcile: outcome_uncertain first_delivery, version ${look + 1}, attempt 1`]);
		expect(inShort((await store.claim('claim', anOwner(), [aCopyOf(request)]))[0])).toBe('duplicate outcome_uncertain');
		await changeRow(database, request.identity, LEASE_OVER);
	}
	expect(await poll()).toEqual([]);
	expect(await rowOf(database, request.identity)).toMatchObject({ state: 'needs_review', version: 3, outcome_reason: 'because' });
});

test('a new attempt may be looked into anew', async () => {
	const request = await make('outcomeUncertain', delivery({ maxAttempts: 2 }));
	const [first] = await poll();
	await store.settle('retryableFailure', anOwner(), [anOutcome(first.record, { retryAfterSeconds: 0 })]);
	const [second] = await poll();
	expect(inWords(second)).toBe('ready: processing retry, version 3, attempt 2');
	await store.settle('outcomeUncertain', anOwner(), [anOutcome(second.record)]);
	expect((await poll()).map(({ course }) => course)).toEqual(['reconcile']);
	expect((await rowOf(database, request.identity)).history.map(({ reason }) => reason)).toEqual(['first_delivery', 'because', 'reconciliation', null, 'retry', null, 'reconciliation']);
});

test('a poller that dies leaves work that comes back, by the rule of the claim', async () => {
	const takenOver = await make('received', delivery({ whenLeaseExpires: 'takeOver' }));
	const lookedInto = await make('received', delivery());
	expect(await poll()).toHaveLength(2);
	for (const { identity } of [takenOver, lookedInto]) await changeRow(database, identity, LEASE_OVER);
	const again = await poll();
	expect(new Map(again.map(({ record, course }) => [record.identity.deliveryId, course]))).toEqual(
		new Map([
			[takenOver.identity.deliveryId, 'ready'],
			[lookedInto.identity.deliveryId, 'reconcile'],
		]),
	);
});

test('who is replaced is fenced off; who took the claim completes it', async () => {
	const request = delivery({ whenLeaseExpires: 'takeOver' });
	const [answer] = await store.claim('claim', anOwner(), [request]);
	await changeRow(database, request.identity, LEASE_OVER);
	const [{ record }] = await poll();
	expect(await store.settle('completed', anOwner(), [anOutcome(ownershipOf(answer), { reference: 'lead-1' })])).toMatchObject([{ verdict: 'stale', reason: 'taken_over' }]);
	expect(await store.settle('completed', anOwner(), [anOutcome(record, { reference: 'lead-2' })])).toMatchObject([{ verdict: 'recorded' }]);
});

test.each(['WITH mine'])('the answer to a look is lost: the repeat gives the same claims, each taken once', async (statement) => {
	const requests = [await make('received'), await make('outcomeUncertain'), await make('received')];
	const proxy = await startProxy(database);
	const behind = openClaimStore(settingsFor(database, { host: proxy.host, port: proxy.port, timeoutMs: 1000 }));
	await behind.openClaimsOf(anOwner());
	proxy.loseAnswerTo(statement);
	const taken = await poll({ limit: 2 }, behind);
	expect(taken.map(({ record }) => record.version)).toEqual([2, 2]);
	expect(taken.map(({ record }) => record.identity.deliveryId)).toEqual(requests.slice(0, 2).map(({ identity }) => identity.deliveryId));
	expect((await poll()).map(({ record }) => record.identity.deliveryId)).toEqual([requests[2].identity.deliveryId]);
	await behind.close();
	await proxy.close();
});

test('ten pollers at once share nothing, and nothing is left', async () => {
	const requests = Array.from({ length: 200 }, () => delivery());
	await store.claim('receive', anOwner(), requests);
	const stores = Array.from({ length: 10 }, () => openClaimStore(settingsFor(database, { maxConnections: 1 })));
	const pollOn = async (by: ClaimStore): Promise<string[]> => {
		const ids: string[] = [];
		for (;;) {
			const taken = await poll({ limit: 7 }, by);
			if (taken.length === 0) return ids;
			ids.push(...taken.map(({ record }) => record.identity.deliveryId));
		}
	};
	const emitted = (await Promise.all(stores.map(pollOn))).flat();
	expect(emitted.sort()).toEqual(requests.map(({ identity }) => identity.deliveryId).sort());
	await Promise.all(stores.map(async (each) => await each.close()));
});

test('a claim that somebody holds is passed over, not waited for', async () => {
	const [held, free] = [await make('received'), await make('received')];
	await database.query('BEGIN');
	await database.query('SELECT FROM idempotent_claims WHERE delivery_id = $1 FOR UPDATE', [held.identity.deliveryId]);
	expect((await poll()).map(({ record }) => record.identity.deliveryId)).toEqual([free.identity.deliveryId]);
	await database.query('ROLLBACK');
	expect((await poll()).map(({ record }) => record.identity.deliveryId)).toEqual([held.identity.deliveryId]);
});
