import { randomUUID } from 'node:crypto';
import { openClaimStore, type ClaimStore } from '../../store/claimStore';
import type { OutcomeKind } from '../../store/decisions';
import type { SeenClaim } from '../../store/handle';
import type { Identity } from '../../store/identity';
import type { StoredPayload } from '../../store/payload';
import { STATES, type State } from '../../store/record';
import type { ClaimRequest } from '../../store/request';
import type { Decision } from '../../store/resolve';
import type { Resolution } from '../../store/statements/resolveClaims';
import type { RecoveredClaim } from '../../store/statements/takeDueClaims';
import type { TestDatabase } from '../support/database';
import { startProxy, type Proxy } from '../support/proxy';
import { LEASE_OVER } from '../support/timePassed';
import { aCopyOf, anIdentity, anOutcome, anOwner, aRequest, changeRow, inShort, ownershipOf, rowOf, settingsFor } from './support/claims';
import { shareStore } from './support/sharedStore';

/** What an operator sees, decides, counts and removes. */

let database: TestDatabase;
let store: ClaimStore;
/** Of one test, so that no test finds another's claims. */
let source: string;

shareStore((shared) => ({ database, store } = shared));
beforeEach(() => (source = randomUUID()));

const KEPT: StoredPayload = { json: '{"lead":1}', complete: true };
const PURGE_DUE = `purge_after = now() - interval '1 second'`;

const delivery = (identity: Partial<Identity> = {}, changes: Partial<ClaimRequest> = {}) => aRequest({ identity: anIdentity({ source, ...identity }), payload: KEPT, ...changes });

const OUTCOME_OF: Partial<Record<State, OutcomeKind>> = { completed: 'completed', retryable_failure: 'retryableFailure', outcome_uncertain: 'outcomeUncertain', needs_review: 'needsReview' };

/** A claim in one state, as its owner left it. */
async function make(state: State, request = delivery(), changes?: string): Promise<ClaimRequest> {
	const [answer] = await store.claim(state === 'received' ? 'receive' : 'claim', anOwner(), [request]);
	const outcome = OUTCOME_OF[state];
	if (outcome) await store.settle(outcome, anOwner(), [anOutcome(ownershipOf(answer), { reason: 'because' })]);
	if (changes) await changeRow(database, request.identity, changes);
	return request;
}

async function see({ identity }: { identity: Identity }): Promise<SeenClaim> {
	const details = await store.details(identity);
	if (!details) throw new Error('There is no such claim');
	return details.record;
}

const decisionOn = (seen: SeenClaim, resolution: Resolution, changes: Partial<Decision> = {}): Decision => ({
	...{ seen, resolution, reference: resolution === 'completed' ? 'lead-7' : null, decidedBy: 'Ada', reason: 'looked it up' },
	...changes,
});

async function poll(by = store): Promise<RecoveredClaim[]> {
	const recover = ['received', 'retryableFailures', 'expiredLeases', 'uncertainOutcomes'] as const;
	return await by.takeDue(anOwner(), { source, action: 'create-lead', environment: 'live', recover, limit: 20, leaseSeconds: 60, pollId: randomUUID() });
}

const UNFINISHED = STATES.filter((state) => state !== 'completed');
const RESOLUTIONS = { completed: 'completed', noActionNeeded: 'completed', release: 'retryable_failure', needsReview: 'needs_review' } as const;

describe('a decision', () => {
	describe.each(UNFINISHED)('on a claim in %s', (from) => {
		test.each(Object.entries(RESOLUTIONS) as Array<[Resolution, State]>)('%s: %s', async (resolution, to) => {
			const request = await make(from);
			const before = await rowOf(database, request.identity);
			const answer = await store.resolve(decisionOn(await see(request), resolution));
			const finished = to === 'completed';

			const after = await rowOf(database, request.identity);
			expect(after).toMatchObject({
				...{ state: to, version: before.version + 1, attempt: before.attempt, resolved_by: 'Ada', lease_expires_at: null },
				...{ outcome_reference: resolution === 'completed' ? 'lead-7' : null, outcome_result: null, outcome_reason: 'looked it up' },
				...{ payload: finished ? null : { lead: 1 }, payload_complete: !finished, max_attempts: 5 },
			});
			expect(after.owner_token).not.toBe(before.owner_token);
			expect(after.outcome_recorded_at).not.toBeNull();
			expect(after.purge_after === null).toBe(!finished);
			expect(after.retry_at === null).toBe(resolution !== 'release');
			expect(after.history).toEqual([
				...before.history,
				{ at: after.history.at(-1)?.at, state: to, version: before.version + 1, attempt: before.attempt, workflow: null, execution: null, by: 'Ada', reason: 'looked it up', reference: after.outcome_reference },
			]);

			expect(answer).toMatchObject({ answer: 'resolved', details: { record: { state: to, version: before.version + 1, resolvedBy: 'Ada' } } });
			expect(answer).toEqual({ answer: 'resolved', details: await store.details(request.identity) });
		});
	});

	test.each(Object.keys(RESOLUTIONS) as Resolution[])('%s on a completed claim: changed, and nothing is written', async (resolution) => {
		const request = await make('completed');
		const before = await rowOf(database, request.identity);
		expect(await store.resolve(decisionOn(await see(request), resolution))).toMatchObject({ answer: 'changed', details: { record: { state: 'completed' } } });
		expect(await rowOf(database, request.identity)).toEqual(before);
	});

	test('that finishes a test claim, or leaves it open, does not keep it for ever', async () => {
		for (const resolution of ['completed', 'needsReview'] as const) {
			const request = await make('outcome_uncertain', delivery({ environment: 'test' }));
			await store.resolve(decisionOn(await see(request), resolution));
			expect((await rowOf(database, request.identity)).purge_after).not.toBeNull();
		}
	});

	test('a finished claim is remembered for its retention, from the decision on', async () => {
		const request = await make('needs_review', delivery({}, { retentionDays: 7 }));
		await store.resolve(decisionOn(await see(request), 'completed'));
		const { purge_after: until, outcome_recorded_at: decided } = await rowOf(database, request.identity);
		expect((Number(until) - Number(decided)) / 86_400_000).toBeCloseTo(7, 4);
		expect((await store.claim('claim', anOwner(), [aCopyOf(request)])).map(inShort)).toEqual(['duplicate completed']);
	});
});

describe('what has moved since it was seen is left as it is', () => {
	const moves: Record<string, (request: ClaimRequest, ownership: SeenClaim) => Promise<unknown>> = {
		'its owner completed it': async (_request, owner) => await store.settle('completed', anOwner(), [anOutcome(owner, { reference: 'lead-1' })]),
		'its owner recorded a retryable failure': async (_request, owner) => await store.settle('retryableFailure', anOwner(), [anOutcome(owner)]),
		'its owner recorded that it does not know': async (_request, owner) => await store.settle('outcomeUncertain', anOwner(), [anOutcome(owner)]),
		'another delivery took it over': async (request) => {
			await changeRow(database, request.identity, LEASE_OVER);
			return await store.claim('claim', anOwner(), [aCopyOf(request)]);
		},
		'recovery took it over': async (request) => {
			await changeRow(database, request.identity, LEASE_OVER);
			return await poll();
		},
		'another operator put it aside': async (_request, owner) => await store.resolve(decisionOn(owner, 'needsReview', { decidedBy: 'Grace' })),
		'another operator completed it': async (_request, owner) => await store.resolve(decisionOn(owner, 'completed', { decidedBy: 'Grace' })),
		'another operator released it': async (_request, owner) => await store.resolve(decisionOn(owner, 'release', { decidedBy: 'Grace' })),
	};

	test.each(Object.entries(moves))('%s', async (_how, move) => {
		const request = await make('processing', delivery({}, { whenLeaseExpires: 'takeOver' }));
		const seen = await see(request);
		await move(request, seen);
		const moved = await rowOf(database, request.identity);
		expect(moved).not.toMatchObject({ state: seen.state, version: seen.version });
		for (const resolution of Object.keys(RESOLUTIONS) as Resolution[]) {
			const answer = await store.resolve(decisionOn(seen, resolution));
			expect(answer).toEqual({ answer: 'changed', details: await store.details(request.identity) });
			expect(await rowOf(database, request.identity)).toEqual(moved);
		}
	});

	test('a delivery found its lease over and marked it uncertain, under the same owner and version', async () => {
		const request = await make('processing');
		const seen = await see(request);
		await changeRow(database, request.identity, LEASE_OVER);
		await store.claim('claim', anOwner(), [aCopyOf(request)]);
		const moved = await rowOf(database, request.identity);
		expect(moved).toMatchObject({ state: 'outcome_uncertain', version: seen.version, owner_token: seen.ownerToken });
		expect((await store.resolve(decisionOn(seen, 'release'))).answer).toBe('changed');
		expect(await rowOf(database, request.identity)).toEqual(moved);
	});

	test('it was purged: not_found, and no row is made', async () => {
		const request = await make('needs_review', delivery({ environment: 'test' }));
		const seen = await see(request);
		await store.purge({ what: 'allTests', limit: 1000 }, false);
		expect(await store.resolve(decisionOn(seen, 'completed'))).toEqual({ answer: 'not_found', details: null });
		expect(await store.details(request.identity)).toBeUndefined();
	});

	test('it was purged and delivered anew: another claim, whatever its version', async () => {
		const request = await make('processing', delivery({ environment: 'test' }));
		const seen = await see(request);
		await store.purge({ what: 'allTests', limit: 1000 }, false);
		await make('processing', aCopyOf(request));
		const anew = await rowOf(database, request.identity);
		expect(anew).toMatchObject({ state: seen.state, version: seen.version });
		expect((await store.resolve(decisionOn(seen, 'completed'))).answer).toBe('changed');
		expect(await rowOf(database, request.identity)).toEqual(anew);
	});

	test('of ten operators who saw the same record one decides', async () => {
		const request = await make('outcome_uncertain');
		const seen = await see(request);
		const answers = await Promise.all(Array.from({ length: 10 }, async (_, index) => await store.resolve(decisionOn(seen, index % 2 ? 'release' : 'completed', { decidedBy: `operator ${index}` }))));
		expect(answers.filter(({ answer }) => answer === 'resolved')).toHaveLength(1);
		const row = await rowOf(database, request.identity);
		expect(row.version).toBe(2);
		expect(row.resolved_by).toBe(answers.find(({ answer }) => answer === 'resolved')?.details?.record.resolvedBy);
		expect(row.history).toHaveLength(3);
	});

	test('owner and operator at the same moment, many times: one of both is told that the other was first', async () => {
		for (let time = 0; time < 40; time++) {
			const request = delivery();
			const [claimed] = await store.claim('claim', anOwner(), [request]);
			const seen = await see(request);
			const [[settled], decided] = await Promise.all([
				store.settle('completed', anOwner(), [anOutcome(ownershipOf(claimed), { reference: 'lead-1' })]),
				store.resolve(decisionOn(seen, 'completed')),
			]);
			const { outcome_reference: reference } = await rowOf(database, request.identity);
			expect([settled.verdict, decided.answer, reference]).toEqual(reference === 'lead-1' ? ['recorded', 'changed', 'lead-1'] : ['stale', 'resolved', 'lead-7']);
		}
	});
});

describe('who is fenced off', () => {
	test.each([
		['release', 'resolved'],
		['needsReview', 'resolved'],
		['completed', 'already_completed'],
		['noActionNeeded', 'already_completed'],
	] as const)('after %s a late owner is stale: %s; its reference is kept as evidence', async (resolution, reason) => {
		const request = delivery();
		const [claimed] = await store.claim('claim', anOwner(), [request]);
		await store.resolve(decisionOn(await see(request), resolution));
		const decided = await rowOf(database, request.identity);
		for (const outcome of ['completed', 'retryableFailure', 'extendLease'] as const) {
			const [answer] = await store.settle(outcome, anOwner(), [anOutcome(ownershipOf(claimed), { reference: 'late-1' })]);
			expect(answer).toMatchObject({ verdict: 'stale', reason });
		}
		const { history, updated_at: _at, ...after } = await rowOf(database, request.identity);
		expect(decided).toMatchObject(after);
		expect(JSON.stringify(history).split('late-1')).toHaveLength(2);
	});

	test('the owner of a stored delivery that was never begun is nobody: the decision alone stands', async () => {
		const request = await make('received');
		await store.resolve(decisionOn(await see(request), 'noActionNeeded'));
		expect(await poll()).toEqual([]);
	});
});

describe('release', () => {
	test.each([
		['the next delivery gets it', async (request: ClaimRequest) => (await store.claim('claim', anOwner(), [aCopyOf(request)])).map((answer) => `${inShort(answer)}, attempt ${answer.verdict === 'error' ? '' : answer.record.attempt}`)],
		['recovery gets it', async () => (await poll()).map(({ course, record }) => `${course === 'ready' ? 'new' : course} ${record.claimReason}, attempt ${record.attempt}`)],
	])('%s with one attempt more, although its attempts were used up', async (_who, next) => {
		const request = await make('retryable_failure', delivery({}, { maxAttempts: 1 }));
		expect(await rowOf(database, request.identity)).toMatchObject({ state: 'needs_review', attempt: 1, max_attempts: 1 });
		await store.resolve(decisionOn(await see(request), 'release'));
		expect(await rowOf(database, request.identity)).toMatchObject({ state: 'retryable_failure', attempt: 1, max_attempts: 2 });
		expect(await next(request)).toEqual(['new retry, attempt 2']);
		// The operator's name stands until the next ownership; the history keeps it.
		const row = await rowOf(database, request.identity);
		expect(row).toMatchObject({ state: 'processing', version: 3, attempt: 2, resolved_by: null });
		expect(row.history.map(({ by, reason }) => [by, reason])).toContainEqual(['Ada', 'looked it up']);
	});

	test('of attempts that are left takes none away and adds none', async () => {
		const request = await make('outcome_uncertain', delivery({}, { maxAttempts: 3 }));
		await store.resolve(decisionOn(await see(request), 'release'));
		expect((await rowOf(database, request.identity)).max_attempts).toBe(3);
	});
});

describe('a line that breaks', () => {
	let proxy: Proxy;
	let behind: ClaimStore;
	beforeEach(async () => {
		proxy = await startProxy(database);
		behind = openClaimStore(settingsFor(database, { host: proxy.host, port: proxy.port, timeoutMs: 1500 }));
		await behind.openClaimsOf(anOwner());
	});
	afterEach(async () => {
		await behind.close();
		await proxy.close();
	});

	test.each(Object.entries(RESOLUTIONS) as Array<[Resolution, State]>)('the answer to %s is lost: resolved, written once', async (resolution, to) => {
		const request = await make('outcome_uncertain');
		const lost = proxy.loseAnswerTo('UPDATE "');
		expect(await behind.resolve(decisionOn(await see(request), resolution))).toMatchObject({ answer: 'resolved', details: { record: { state: to, version: 2 } } });
		await lost.happened;
		const row = await rowOf(database, request.identity);
		expect(row).toMatchObject({ state: to, version: 2 });
		expect(row.history.filter(({ by }) => by === 'Ada')).toHaveLength(1);
	});

	test('the answer to a release is lost, and recovery takes the claim meanwhile: resolved all the same, and written once', async () => {
		const request = await make('outcome_uncertain');
		const seen = await see(request);
		const lost = proxy.loseAnswerTo('UPDATE "');
		const held = proxy.hold('UPDATE "');
		const deciding = behind.resolve(decisionOn(seen, 'release'));
		await lost.happened;
		await held.happened;
		expect(await poll()).toMatchObject([{ course: 'ready' }]);
		held.release();
		expect(await deciding).toMatchObject({ answer: 'resolved', details: { record: { state: 'processing', version: 3 } } });
		expect((await rowOf(database, request.identity)).history.filter(({ by }) => by === 'Ada')).toHaveLength(1);
	});

	test('and the server cannot be reached again: outcome_unknown; the same decision knows itself later, another one does not pass for it', async () => {
		const request = await make('outcome_uncertain');
		const decision = decisionOn(await see(request), 'completed', { id: randomUUID() });
		void proxy.loseAnswerTo('UPDATE "').happened.then(async () => await proxy.refuse());
		await expect(behind.resolve(decision)).rejects.toMatchObject({ kind: 'outcome_unknown' });
		expect(await store.resolve(decision)).toMatchObject({ answer: 'resolved' });
		expect(await store.resolve({ ...decision, id: randomUUID() })).toMatchObject({ answer: 'changed' });
		expect((await rowOf(database, request.identity)).history.filter(({ by }) => by === 'Ada')).toHaveLength(1);
	});

	test('before the decision reached the server, and somebody else decides meanwhile: changed', async () => {
		const request = await make('outcome_uncertain');
		const seen = await see(request);
		const held = proxy.hold('UPDATE "');
		const deciding = behind.resolve(decisionOn(seen, 'release'));
		await held.happened;
		await store.resolve(decisionOn(seen, 'needsReview', { decidedBy: 'Grace' }));
		held.release();
		expect(await deciding).toMatchObject({ answer: 'changed', details: { record: { resolvedBy: 'Grace' } } });
	});
});

describe('find', () => {
	const found = async (filter: Parameters<ClaimStore['find']>[0], limit = 50) => (await store.find({ source, ...filter }, limit)).map(({ record }) => record.identity.deliveryId);

	test('by each part, and by all of them together', async () => {
		const mine = delivery({ deliveryId: 'find-me', account: 'a', action: 'x' });
		const owner = anOwner();
		await store.claim('claim', owner, [mine]);
		await make('received', delivery({ deliveryId: 'other', account: 'b', action: 'y' }));
		await make('completed', delivery({ deliveryId: 'tried', account: 'b', action: 'y', environment: 'test' }));
		expect(await found({})).toEqual(['find-me', 'other', 'tried']);
		expect(await found({ deliveryId: 'find-me' })).toEqual(['find-me']);
		expect(await found({ account: 'a' })).toEqual(['find-me']);
		expect(await found({ action: 'y' })).toEqual(['other', 'tried']);
		expect(await found({ environment: 'test' })).toEqual(['tried']);
		expect(await found({ executionId: owner.executionId })).toEqual(['find-me']);
		expect(await found({ states: ['received'] })).toEqual(['other']);
		expect(await found({ states: ['received', 'completed'] })).toEqual(['other', 'tried']);
		expect(await found({ states: ['received', 'completed'], environment: 'live', account: 'b', action: 'y', deliveryId: 'other', olderThanSeconds: 0 })).toEqual(['other']);
		expect(await found({ source: 'nobody' })).toEqual([]);
	});

	test('older than, oldest first, at most as many as asked for', async () => {
		for (const hours of [1, 3, 2]) await make('received', delivery({ deliveryId: `${hours} h` }), `first_seen_at = now() - interval '${hours} hours'`);
		expect(await found({ olderThanSeconds: 0 })).toEqual(['3 h', '2 h', '1 h']);
		expect(await found({ olderThanSeconds: 5400 })).toEqual(['3 h', '2 h']);
		expect(await found({ olderThanSeconds: 0 }, 2)).toEqual(['3 h', '2 h']);
	});

	test('leases that are over: of work in progress and of reconciliations, never of what is finished', async () => {
		await make('processing', delivery({ deliveryId: 'running' }));
		await make('processing', delivery({ deliveryId: 'over' }), LEASE_OVER);
		await make('outcome_uncertain', delivery({ deliveryId: 'looked into' }), LEASE_OVER);
		await make('completed', delivery({ deliveryId: 'done' }), LEASE_OVER);
		expect(await found({ leaseExpired: true })).toEqual(['over', 'looked into']);
	});

	test.each([`' OR true --`, `"`, '%', '_', `\\`, `'; DROP TABLE idempotent_claims; --`, '$1', 'Ж😀'])('a value such as %s is only a value', async (hostile) => {
		await make('received');
		expect(await found({ deliveryId: hostile })).toEqual([]);
		await make('received', delivery({ deliveryId: hostile, account: hostile, action: hostile }));
		expect(await found({ deliveryId: hostile, account: hostile, action: hostile })).toEqual([hostile]);
		expect(await found({ executionId: hostile })).toEqual([]);
	});

	test('payloads can be left out; all else is the same', async () => {
		await make('received');
		const [whole] = await store.find({ source }, 1);
		const [without] = await store.find({ source }, 1, false);
		expect(whole.payload).toEqual({ lead: 1 });
		expect(without).toEqual({ ...whole, payload: null });
	});
});

test('summarize counts what is there: by environment, source and state, with what is stuck', async () => {
	for (const hours of [5, 9]) await make('processing', delivery(), `${LEASE_OVER}, first_seen_at = '2020-01-01T0${hours}:00:00Z'`);
	await make('processing', delivery({}, { payload: { json: null, complete: false } }));
	await make('completed', delivery(), LEASE_OVER);
	await make('received', delivery({ environment: 'test' }));
	const mine = (await store.summarize()).filter((count) => count.source === source);
	expect(mine).toMatchObject([
		{ environment: 'live', state: 'completed', claims: 1, leasesExpired: 0, withoutPayload: 0 },
		{ environment: 'live', state: 'processing', claims: 3, oldest: '2020-01-01T05:00:00.000Z', leasesExpired: 2, withoutPayload: 1 },
		{ environment: 'test', state: 'received', claims: 1, leasesExpired: 0, withoutPayload: 0 },
	]);
});

describe('purge', () => {
	const PAST_RETENTION = { what: 'pastRetention', limit: 1_000_000 } as const;
	const ALL_TESTS = { what: 'allTests', limit: 1_000_000 } as const;
	beforeEach(async () => {
		await database.query('DELETE FROM idempotent_claims');
	});
	const left = async () => (await database.query<{ delivery_id: string }>('SELECT delivery_id FROM idempotent_claims ORDER BY delivery_id')).map(({ delivery_id: id }) => id);

	async function oneOfEach(environment: Identity['environment'], changes?: string): Promise<void> {
		for (const state of STATES) await make(state, delivery({ deliveryId: `${environment} ${state}`, environment }), changes);
	}

	test('past retention: completed claims and test claims whose time is over, and no others', async () => {
		await oneOfEach('live', PURGE_DUE);
		await oneOfEach('test', PURGE_DUE);
		await make('completed', delivery({ deliveryId: 'remembered' }));
		await make('processing', delivery({ deliveryId: 'remembered test', environment: 'test' }));
		expect(await store.purge(PAST_RETENTION, true)).toEqual({ live: 1, test: 6 });
		expect(await left()).toHaveLength(14);
		expect(await store.purge(PAST_RETENTION, false)).toEqual({ live: 1, test: 6 });
		expect(await left()).toEqual([...UNFINISHED.map((state) => `live ${state}`).sort(), 'remembered', 'remembered test']);
		expect(await store.purge(PAST_RETENTION, false)).toEqual({ live: 0, test: 0 });
	});

	test('all tests: every test claim, whatever its state and age, and no live one', async () => {
		await oneOfEach('live', PURGE_DUE);
		await oneOfEach('test');
		expect(await store.purge(ALL_TESTS, true)).toEqual({ live: 0, test: 6 });
		expect(await store.purge(ALL_TESTS, false)).toEqual({ live: 0, test: 6 });
		expect(await left()).toEqual(STATES.map((state) => `live ${state}`).sort());
	});

	test.each<[string, string | undefined]>([
		['in progress, inside its lease', undefined],
		['in progress, past its lease', LEASE_OVER],
		['in progress, past its lease, and with an instant of purging left behind', `${LEASE_OVER}, ${PURGE_DUE}`],
	])('a claim %s is not touched', async (_what, changes) => {
		const request = await make('processing', delivery(), changes);
		const before = await rowOf(database, request.identity);
		expect(await store.purge(PAST_RETENTION, false)).toEqual({ live: 0, test: 0 });
		expect(await rowOf(database, request.identity)).toEqual(before);
	});

	test('a claim that has just been taken over, or completed, is not touched', async () => {
		const takenOver = await make('processing', delivery({}, { whenLeaseExpires: 'takeOver' }), LEASE_OVER);
		await store.claim('claim', anOwner(), [aCopyOf(takenOver, { whenLeaseExpires: 'takeOver' })]);
		const completed = await make('completed');
		const before = [await rowOf(database, takenOver.identity), await rowOf(database, completed.identity)];
		expect(await store.purge(PAST_RETENTION, false)).toEqual({ live: 0, test: 0 });
		expect([await rowOf(database, takenOver.identity), await rowOf(database, completed.identity)]).toEqual(before);
	});

	test('in batches, up to the maximum, never beyond', async () => {
		const requests = Array.from({ length: 2500 }, (_, index) => delivery({ environment: index < 100 ? 'live' : 'test' }, { retentionDays: 1 }));
		await store.claim('deduplicate', anOwner(), requests);
		await database.query(`UPDATE idempotent_claims SET ${PURGE_DUE}`);
		const first = await store.purge({ ...PAST_RETENTION, limit: 1 }, false);
		expect(first.live + first.test).toBe(1);
		expect(await left()).toHaveLength(2499);
		const counted = await store.purge({ ...PAST_RETENTION, limit: 1500 }, true);
		expect(counted.live + counted.test).toBe(1500);
		const removed = await store.purge({ ...PAST_RETENTION, limit: 1500 }, false);
		expect(removed.live + removed.test).toBe(1500);
		expect(await left()).toHaveLength(999);
		const rest = await store.purge(PAST_RETENTION, true);
		expect(rest.live + rest.test).toBe(999);
		expect(await store.purge(PAST_RETENTION, false)).toEqual(rest);
		expect(await left()).toEqual([]);
	});

	test('five purges at once remove each claim once, and their counts add up', async () => {
		await store.claim('deduplicate', anOwner(), Array.from({ length: 3000 }, () => delivery()));
		await database.query(`UPDATE idempotent_claims SET ${PURGE_DUE}`);
		const removed: number[] = [];
		for (let round = 0; round < 3; round++) removed.push(...(await Promise.all(Array.from({ length: 5 }, async () => (await store.purge(PAST_RETENTION, false)).live))));
		expect(removed.reduce((sum, live) => sum + live, 0)).toBe(3000);
		expect(await left()).toEqual([]);
	});

	test('the answer to a batch is lost: the repeat removes no others, and all are counted', async () => {
		await store.claim('deduplicate', anOwner(), Array.from({ length: 1500 }, () => delivery()));
		await database.query(`UPDATE idempotent_claims SET ${PURGE_DUE}`);
		const proxy = await startProxy(database);
		const behind = openClaimStore(settingsFor(database, { host: proxy.host, port: proxy.port, timeoutMs: 5000 }));
		await behind.openClaimsOf(anOwner());
		proxy.loseAnswerTo('DELETE FROM');
		expect(await behind.purge({ ...PAST_RETENTION, limit: 1000 }, false)).toEqual({ live: 1000, test: 0 });
		expect(await left()).toHaveLength(500);
		await behind.close();
		await proxy.close();
	});

	test('a claim that another session holds is passed over, not waited for', async () => {
		const held = await make('completed', delivery(), PURGE_DUE);
		await make('completed', delivery(), PURGE_DUE);
		await database.query('BEGIN');
		await database.query('SELECT FROM idempotent_claims WHERE delivery_id = $1 FOR UPDATE', [held.identity.deliveryId]);
		expect(await store.purge(PAST_RETENTION, false)).toEqual({ live: 1, test: 0 });
		await database.query('ROLLBACK');
		expect(await left()).toEqual([held.identity.deliveryId]);
	});

	test('a test claim that is taken anew while it is purged: either gone, or there with its new owner', async () => {
		for (let time = 0; time < 40; time++) {
			const request = await make('completed', delivery({ environment: 'test' }, { takenAnewEachRun: true }), PURGE_DUE);
			const again = aCopyOf(request);
			const [[answer], removed] = await Promise.all([store.claim('claim', anOwner(), [again]), store.purge(PAST_RETENTION, false)]);
			expect(answer).toMatchObject({ verdict: 'new', record: { ownerToken: again.ownerToken } });
			// Taken first: then it was no longer past its retention. Purged first: then it was claimed anew.
			expect(await rowOf(database, request.identity)).toMatchObject({ owner_token: again.ownerToken, state: 'processing', version: removed.test === 1 ? 1 : 2 });
			await database.query('DELETE FROM idempotent_claims');
		}
	});

	test('purge and copies of the same delivery at the same instant, many times: at most one of them is new, and only if the claim was gone', async () => {
		let claimedAnew = 0;
		for (let time = 0; time < 60; time++) {
			const request = await make('completed', delivery(), PURGE_DUE);
			const copies = Array.from({ length: 5 }, () => aCopyOf(request));
			const purging = store.purge(PAST_RETENTION, false);
			const answers = (await Promise.all(copies.map(async (copy) => await store.claim('claim', anOwner(), [copy])))).flat();
			const removed = await purging;
			const winners = copies.filter((_, index) => answers[index].verdict === 'new');
			expect(answers.filter(({ verdict }) => verdict === 'error')).toEqual([]);
			expect(winners.length).toBeLessThanOrEqual(removed.live);
			if (winners.length === 1) {
				claimedAnew++;
				expect(await rowOf(database, request.identity)).toMatchObject({ owner_token: winners[0].ownerToken, version: 1 });
			} else {
				expect(answers.map(inShort)).toEqual(copies.map(() => 'duplicate completed'));
			}
			await database.query('DELETE FROM idempotent_claims');
		}
		expect(claimedAnew).toBeGreaterThan(0);
	});
});

describe('a role without the right to delete', () => {
	let role: string;
	let limited: ClaimStore;
	beforeAll(async () => {
		role = `app_${database.database}`;
		await database.query(`CREATE ROLE ${role} LOGIN PASSWORD 'app-only'`);
		await database.query(`GRANT USAGE ON SCHEMA public TO ${role}`);
		await database.query(`GRANT SELECT, INSERT, UPDATE ON idempotent_claims TO ${role}`);
		limited = openClaimStore(settingsFor(database, { user: role, password: 'app-only' }));
	});
	afterAll(async () => {
		await limited.close();
		await database.query(`DROP OWNED BY ${role}`);
		await database.query(`DROP ROLE ${role}`);
	});

	test('may decide, find and count; a purge names the right that it lacks, and removes nothing', async () => {
		const request = await make('completed', delivery({ environment: 'test' }));
		expect((await limited.find({ source }, 5)).map(({ record }) => record.identity)).toEqual([request.identity]);
		expect((await limited.purge({ what: 'allTests', limit: 100_000 }, true)).test).toBeGreaterThan(0);
		await expect(limited.purge({ what: 'allTests', limit: 100_000 }, false)).rejects.toMatchObject({
			kind: 'store_denied',
			message: `The database user "${role}" lacks the right DELETE on "public"."idempotent_claims"`,
			hint: expect.stringContaining(`GRANT DELETE ON "public"."idempotent_claims" TO "${role}"`) as string,
		});
		expect(await store.details(request.identity)).toBeDefined();
	});

	test('the self-test passes, and says that its claim could not be removed', async () => {
		expect(await limited.test(anOwner())).toMatchObject({ passed: true, newClaims: 1, duplicates: 99, error: null, leftBehind: { kind: 'store_denied', message: expect.stringContaining('DELETE') as string } });
		const [{ count }] = await database.query<{ count: string }>("SELECT count(*) FROM idempotent_claims WHERE source = 'self-test'");
		expect(Number(count)).toBe(1);
		await store.purge({ what: 'allTests', limit: 100_000 }, false);
		expect(await store.find({ source: 'self-test' }, 5)).toEqual([]);
	});
});

describe('self-test', () => {
	test('one of a hundred claims is new, and nothing of it stays', async () => {
		expect(await store.test(anOwner())).toEqual({ passed: true, newClaims: 1, duplicates: 99, error: null, leftBehind: null });
		expect(await store.find({ source: 'self-test' }, 5)).toEqual([]);
	});

	test('where the database swallows the claims, it fails and says why', async () => {
		await database.query(`CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`);
		await database.query('CREATE TRIGGER swallow BEFORE INSERT ON idempotent_claims FOR EACH ROW EXECUTE FUNCTION swallow()');
		const result = await store.test(anOwner());
		await database.query('DROP TRIGGER swallow ON idempotent_claims');
		await database.query('DROP FUNCTION swallow');
		expect(result).toMatchObject({ passed: false, newClaims: 0, duplicates: 0, leftBehind: null });
		expect(result.error?.message).toBeTruthy();
	});
});
