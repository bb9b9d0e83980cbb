import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { ClaimStore } from '../../store/claimStore';
import { STATES_THAT_ACCEPT, type OutcomeKind } from '../../store/decisions';
import type { Ownership } from '../../store/handle';
import { STATES, type LeasePolicy, type State } from '../../store/record';
import type { ClaimRequest } from '../../store/request';
import type { Resolution } from '../../store/statements/resolveClaims';
import { RECOVERABLE } from '../../store/statements/takeDueClaims';
import { documentedTable } from '../databases/support/documentedTable';
import { aCopyOf, anIdentity, anOutcome, anOwner, aRequest, changeRow, inShort, ownershipOf, rowOf } from '../store/support/claims';
import { shareStore } from '../store/support/sharedStore';
import type { TestDatabase } from '../support/database';
import { LEASE_OVER, RETRY_DUE } from '../support/timePassed';

/** The diagrams and the lease's table in docs/states.md: everything that can happen to a claim in each state is tried. */

let database: TestDatabase;
let store: ClaimStore;
shareStore((shared) => ({ database, store } = shared));

interface Situation {
	state: State;
	policy: LeasePolicy;
	/** Whether its lease has ended, or its retry is due. */
	timeIsUp: boolean;
	attemptsUsedUp: boolean;
}

interface Claim {
	request: ClaimRequest;
	ownership: Ownership;
}

const OUTCOME_OF: Partial<Record<State, OutcomeKind>> = { completed: 'completed', retryable_failure: 'retryableFailure', outcome_uncertain: 'outcomeUncertain', needs_review: 'needsReview' };
const TIME_IS_UP: Partial<Record<State, string>> = { processing: LEASE_OVER, retryable_failure: RETRY_DUE };

/** A claim as its owner left it. */
async function make({ state, policy, timeIsUp, attemptsUsedUp }: Situation): Promise<Claim> {
	const request = aRequest({ identity: anIdentity({ source: randomUUID() }), payload: { json: '{}', complete: true }, whenLeaseExpires: policy });
	const [answer] = await store.claim(state === 'received' ? 'receive' : 'claim', anOwner(), [request]);
	const ownership = ownershipOf(answer);
	const outcome = OUTCOME_OF[state];
	if (outcome) await store.settle(outcome, anOwner(), [anOutcome(ownership, { reference: 'lead-1' })]);
	if (timeIsUp && TIME_IS_UP[state]) await changeRow(database, request.identity, TIME_IS_UP[state]);
	if (attemptsUsedUp) await changeRow(database, request.identity, 'max_attempts = greatest(attempt, 1)');
	return { request, ownership };
}

const copyTo = (operation: 'claim' | 'receive') => async ({ request }: Claim) => (await store.claim(operation, anOwner(), [aCopyOf(request)]))[0];
const repeat = (state: State) => async ({ request }: Claim) => (await store.claim(state === 'received' ? 'receive' : 'claim', anOwner(), [request]))[0];
const say = (outcome: OutcomeKind) => async ({ ownership }: Claim) => (await store.settle(outcome, anOwner(), [anOutcome(ownership)]))[0];
const poll = async ({ request: { identity } }: Claim) =>
	await store.takeDue(anOwner(), { ...identity, recover: RECOVERABLE, limit: 20, leaseSeconds: 60, pollId: randomUUID() });
const resolve = (resolution: Resolution) => async ({ request }: Claim) => {
	const seen = await store.details(request.identity);
	if (!seen) throw new Error('There is no such claim');
	await store.resolve({ seen: seen.record, resolution, reference: resolution === 'completed' ? 'lead-2' : null, decidedBy: 'Ada', reason: 'looked it up' });
};

const OUTCOMES = Object.keys(STATES_THAT_ACCEPT) as OutcomeKind[];
const RESOLUTIONS: Resolution[] = ['completed', 'noActionNeeded', 'release', 'needsReview'];
const both = [false, true];
const situationsOf = (state: State): Situation[] =>
	(['outcomeUncertain', 'takeOver'] as const).flatMap((policy) => (TIME_IS_UP[state] ? both : [false]).flatMap((timeIsUp) => both.map((attemptsUsedUp) => ({ state, policy, timeIsUp, attemptsUsedUp }))));

/** Which ways lead on from a state, by what may happen to it; a new owner in the same state is a way too. */
async function waysFrom(state: State, events: Array<(claim: Claim) => Promise<unknown>>): Promise<string[]> {
	const ways = new Set<string>();
	for (const situation of situationsOf(state)) {
		for (const event of events) {
			const claim = await make(situation);
			const before = await rowOf(database, claim.request.identity);
			await event(claim);
			const after = await rowOf(database, claim.request.identity);
			if (after.state !== before.state || after.version !== before.version) ways.add(`${before.state} --> ${after.state}`);
		}
	}
	return [...ways].sort();
}

/** The arrows of a diagram of the page, without their words and without beginning and end. */
function drawn(diagram: number): string[] {
	const blocks = [...readFileSync(path.join(__dirname, '../../docs/states.md'), 'utf8').matchAll(/```mermaid\n([\s\S]*?)```/g)].map(([, text]) => text);
	return [...blocks[diagram].matchAll(/^ *(\w+) --> (\w+):/gm)].map(([, from, to]) => `${from} --> ${to}`).sort();
}

test.each([...STATES])('the first diagram shows the ways from %s', async (state) => {
	const ways = await waysFrom(state, [copyTo('claim'), copyTo('receive'), repeat(state), poll, ...OUTCOMES.map(say)]);
	expect(drawn(0).filter((arrow) => arrow.startsWith(`${state} `))).toEqual(ways);
});

test.each([...STATES])("the second diagram shows a person's decisions on %s", async (state) => {
	const arrows = state === 'completed' ? [] : drawn(1).map((arrow) => arrow.replace('unfinished', state));
	expect(arrows).toEqual(await waysFrom(state, RESOLUTIONS.map(resolve)));
});

describe('the table of the lease', () => {
	const rows = documentedTable('states.md', 'lease over').rows.map((row) => row.map((cell) => cell.replaceAll('*', '')));
	const SITUATIONS: Record<string, Omit<Situation, 'state'>> = {
		'either running': { policy: 'takeOver', timeIsUp: false, attemptsUsedUp: true },
		'Mark as Outcome Uncertain over': { policy: 'outcomeUncertain', timeIsUp: true, attemptsUsedUp: true },
		'Take Over, attempts left over': { policy: 'takeOver', timeIsUp: true, attemptsUsedUp: false },
		'Take Over, attempts used up over': { policy: 'takeOver', timeIsUp: true, attemptsUsedUp: true },
	};
	const inWords = (short: string, state: State) => `${short.replace('new ', 'New Claim ').replace('duplicate ', 'Known Duplicate ')}${short === `duplicate ${state}` ? ', and so is the state' : ''}`;

	test.each(rows)('%s, lease %s', async (policy, lease, toClaim, toReceive, recovery, lateOwner) => {
		const situation: Situation = { state: 'processing', ...SITUATIONS[`${policy} ${lease}`] };
		const stateOf = async ({ request }: Claim) => (await rowOf(database, request.identity)).state as State;
		const copy = async (operation: 'claim' | 'receive') => {
			const claim = await make(situation);
			return inWords(inShort(await copyTo(operation)(claim)), await stateOf(claim));
		};
		expect([await copy('claim'), await copy('receive')]).toEqual([toClaim, toReceive]);

		const polled = await make(situation);
		const [taken] = await poll(polled);
		const state = await stateOf(polled);
		const left = state === 'processing' ? 'leaves it alone' : `starts nothing; the state is now ${state}`;
		expect(recovery).toBe(taken === undefined ? left : { ready: 'Ready to Run, if the payload is stored', reconcile: 'Reconcile First' }[taken.course]);

		const late = await make(situation);
		expect((await say('completed')(late)).verdict).toBe('recorded');
		expect(lateOwner).toMatch(/^Recorded/);
	});
});
