import fc from 'fast-check';
import type { Environment, LeasePolicy, Operation, OutcomeKind } from './contract';
import type { OperatorDecision } from './model';

/**
 * The steps that a random history is made of: plain data. What a step refers to ("the last handle but one") is
 * looked up when it runs; one that refers to nothing is passed over, so that any part of a history is a history.
 */

/** Which store sends it: the last one's line goes through a proxy. */
export const STORES = 3;
/** Deliveries of one history. */
export const DELIVERIES = ['n1', 'n2'] as const;

export interface Settings {
	leaseSeconds: number;
	whenLeaseExpires: LeasePolicy;
	maxAttempts: number;
	retentionDays: number;
	takenAnewEachRun: boolean;
	fingerprint: string | null;
	mismatchIsAnError: boolean;
	payload: boolean;
}

/** A statement that does not reach the server, or whose answer does not come back. */
export interface Fault {
	at: 'INSERT INTO' | 'JOIN "' | 'UPDATE "';
	fate: 'loseAnswer' | 'cutBefore';
	times: 1 | 2;
	/** Nothing goes through afterwards. With `times` 2 the answer to an INSERT is lost before: what was sent again may have met its own row. */
	serverGone: boolean;
}

/** Deliveries come, in one call. */
export interface Come {
	kind: 'come';
	store: number;
	operation: Operation;
	environment: Environment;
	/** Indices of DELIVERIES; repeats are meant. */
	deliveries: number[];
	by: 'a new execution' | 'another node of the last execution' | 'a later run of the last node';
	settings: Settings;
	fault: Fault | null;
}

/** Retry On Fail: an earlier call once more, unchanged. */
export interface Again {
	kind: 'again';
	store: number;
	/** How many calls back. */
	back: number;
	fault: Fault | null;
}

export type Whose =
	| { of: 'the current owner'; delivery: number; environment: Environment }
	| { of: 'a replaced owner'; delivery: number; environment: Environment; back: number }
	| { of: 'any owner'; back: number }
	| { of: 'nobody'; delivery: number; environment: Environment };

/** An execution says what became of its claims. */
export interface Say {
	kind: 'say';
	store: number;
	outcome: OutcomeKind;
	whose: Whose[];
	reference: string | null;
	reason: string | null;
	result: number | null;
	keepPayload: boolean;
	retryAfterSeconds: number;
	leaseSeconds: number;
	/** Another execution than the owning one: the handle was handed on. */
	fromElsewhere: boolean;
	fault: Fault | null;
}

/** A run that fails right after its claims gives them back; it may have been slow, and others have come meanwhile. */
export interface GiveBack {
	kind: 'giveBack';
	store: number;
	/** How many calls back. */
	back: number;
	fault: Fault | null;
}

/** An operator settles an unfinished claim, as it is when this step begins. */
export interface Decide {
	kind: 'decide';
	store: number;
	delivery: number;
	environment: Environment;
	decision: OperatorDecision;
	reference: string | null;
	fault: Fault | null;
}

/** One call of one store. */
export type Call = Come | Again | Say | GiveBack | Decide;

export type HistoryStep =
	| Call
	/** Two calls at once; `held`: the other comes in between, before the first one's statement reaches the server. */
	| { kind: 'both'; one: Call; other: Call; held: Fault['at'] | null }
	| { kind: 'timePasses'; minutes: number }
	| { kind: 'purge'; what: 'pastRetention' | 'allTests'; store: number }
	| { kind: 'delete'; delivery: number; environment: Environment };


const weighted = <T>(...choices: Array<[weight: number, value: T]>) => fc.oneof(...choices.map(([weight, value]) => ({ weight, arbitrary: fc.constant(value) })));

const store = fc.integer({ min: 0, max: STORES - 1 });
const delivery = weighted([6, 0], [1, 1]);
const environment = weighted<Environment>([4, 'live'], [2, 'test']);
const reference = weighted<string | null>([2, null], [2, 'lead-1'], [1, 'lead-2']);

const settings: fc.Arbitrary<Settings> = fc.record({
	leaseSeconds: weighted([3, 60], [1, 600]),
	whenLeaseExpires: weighted<LeasePolicy>([1, 'outcomeUncertain'], [2, 'takeOver']),
	maxAttempts: weighted([3, 5], [2, 1], [2, 2]),
	retentionDays: weighted([3, 30], [1, 1]),
	takenAnewEachRun: weighted([2, false], [1, true]),
	fingerprint: weighted<string | null>([4, null], [3, 'one content'], [1, 'another content']),
	mismatchIsAnError: weighted([1, false], [1, true]),
	payload: fc.boolean(),
});

const fault: fc.Arbitrary<Fault | null> = fc.oneof(
	{ weight: 7, arbitrary: fc.constant(null) },
	{
		weight: 1,
		arbitrary: fc.record({
			at: weighted<Fault['at']>([3, 'INSERT INTO'], [1, 'JOIN "'], [3, 'UPDATE "']),
			fate: weighted<Fault['fate']>([3, 'loseAnswer'], [1, 'cutBefore']),
			times: weighted<1 | 2>([2, 1], [1, 2]),
			serverGone: weighted([5, false], [1, true]),
		}),
	},
);

/** Of what throws where no answer is to be had. */
const passingFault = fault.map((each) => each && { ...each, serverGone: false });

const comeParts = {
	kind: fc.constant('come'),
	store,
	operation: weighted<Operation>([6, 'claim'], [2, 'receive'], [1, 'deduplicate']),
	environment,
	deliveries: fc.oneof({ weight: 4, arbitrary: delivery.map((index) => [index]) }, { weight: 1, arbitrary: fc.array(delivery, { minLength: 1, maxLength: 4, size: 'max' }) }),
	by: weighted<Come['by']>([8, 'a new execution'], [2, 'another node of the last execution'], [1, 'a later run of the last node']),
	settings,
	fault,
} as const;
const come: fc.Arbitrary<Come> = fc.record(comeParts);

const again: fc.Arbitrary<Again> = fc.record({ kind: fc.constant('again'), store, back: weighted([4, 0], [2, 1], [1, 2]), fault });

const whose: fc.Arbitrary<Whose> = fc.oneof(
	{ weight: 8, arbitrary: fc.record({ of: fc.constant('the current owner'), delivery, environment }) },
	{ weight: 4, arbitrary: fc.record({ of: fc.constant('a replaced owner'), delivery, environment, back: weighted([2, 0], [1, 1]) }) },
	{ weight: 2, arbitrary: fc.record({ of: fc.constant('any owner'), back: weighted([2, 0], [1, 1], [1, 2]) }) },
	{ weight: 1, arbitrary: fc.record({ of: fc.constant('nobody'), delivery, environment }) },
);

const sayParts = {
	kind: fc.constant('say'),
	store,
	outcome: weighted<OutcomeKind>([4, 'completed'], [1, 'noActionNeeded'], [5, 'retryableFailure'], [3, 'outcomeUncertain'], [2, 'needsReview'], [3, 'extendLease']),
	whose: fc.oneof({ weight: 4, arbitrary: whose.map((one) => [one]) }, { weight: 1, arbitrary: fc.array(whose, { minLength: 1, maxLength: 4, size: 'max' }) }),
	reference,
	reason: weighted<string | null>([2, 'HTTP 500'], [1, null]),
	result: weighted<number | null>([2, null], [1, 7]),
	keepPayload: weighted([2, false], [1, true]),
	retryAfterSeconds: weighted([3, 60], [4, 0], [3, 86_400]),
	leaseSeconds: weighted([2, 60], [1, 600]),
	fromElsewhere: weighted([3, false], [1, true]),
	fault,
} as const;
const say: fc.Arbitrary<Say> = fc.record(sayParts);

const giveBack: fc.Arbitrary<GiveBack> = fc.record({ kind: fc.constant('giveBack'), store, back: weighted([3, 0], [2, 1]), fault: passingFault });

const decide: fc.Arbitrary<Decide> = fc.record({
	kind: fc.constant('decide'),
	store,
	delivery,
	environment,
	decision: fc.constantFrom<OperatorDecision>('completed', 'release', 'needsReview', 'noActionNeeded'),
	reference,
	fault: passingFault,
});

const call: fc.Arbitrary<Call> = fc.oneof({ weight: 6, arbitrary: come }, { weight: 1, arbitrary: again }, { weight: 4, arbitrary: say }, { weight: 1, arbitrary: giveBack }, { weight: 1, arbitrary: decide });

/** A copy of the first delivery alone, and its owner's word: the two that are most often decided by who is first. */
const copyOfFirst: fc.Arbitrary<Come> = fc.record({ ...comeParts, deliveries: fc.constant<number[]>([0]), environment: fc.constant<Environment>('live'), fault: fc.constant(null) });
const ownersWord: fc.Arbitrary<Say> = fc.record({
	...sayParts,
	outcome: weighted<OutcomeKind>([4, 'extendLease'], [2, 'completed'], [2, 'retryableFailure'], [1, 'outcomeUncertain'], [1, 'needsReview']),
	whose: fc.constant<Whose[]>([{ of: 'the current owner', delivery: 0, environment: 'live' }]),
	fault: fc.constant(null),
});
/** What was sent again may have met its own row, when the server goes: then nobody may say "certainly not". */
const goneInDoubt: Fault = { at: 'JOIN "', fate: 'cutBefore', times: 2, serverGone: true };
const firstOfAll: fc.Arbitrary<Come> = fc.record({ ...comeParts, deliveries: fc.constant<number[]>([0]), environment: fc.constant<Environment>('live'), fault: weighted<Fault | null>([20, null], [1, goneInDoubt]) });

const leaseOver: fc.Arbitrary<HistoryStep> = fc.record({ kind: fc.constant('timePasses'), minutes: weighted([1, 2], [2, 11]) });

const MINUTES = { hour: 60, day: 1440 };

const step: fc.Arbitrary<HistoryStep> = fc.oneof(
	{ weight: 48, arbitrary: come },
	{ weight: 12, arbitrary: again },
	{ weight: 42, arbitrary: say },
	{ weight: 9, arbitrary: giveBack },
	{ weight: 30, arbitrary: fc.record({ kind: fc.constant('both'), one: call, other: call, held: weighted<Fault['at'] | null>([3, null], [3, 'UPDATE "'], [1, 'JOIN "'], [1, 'INSERT INTO']) }) },
	{ weight: 20, arbitrary: fc.record({ kind: fc.constant('both'), one: copyOfFirst, other: fc.oneof(ownersWord, ownersWord, copyOfFirst), held: weighted<Fault['at'] | null>([1, null], [3, 'UPDATE "']) }) },
	{ weight: 32, arbitrary: fc.record({ kind: fc.constant('timePasses'), minutes: weighted([6, 2], [2, 11], [2, 13 * MINUTES.hour], [1, 2 * MINUTES.day], [1, 31 * MINUTES.day]) }) },
	{ weight: 4, arbitrary: fc.record({ kind: fc.constant('purge'), what: weighted<'pastRetention' | 'allTests'>([3, 'pastRetention'], [1, 'allTests']), store }) },
	{ weight: 2, arbitrary: fc.record({ kind: fc.constant('delete'), delivery, environment }) },
	{ weight: 6, arbitrary: decide },
);

/** How long a history may be; one longer has little more to say about two deliveries. */
const MAX_STEPS = 20;

const anything = fc.array(step, { minLength: 1, maxLength: MAX_STEPS, size: 'max' });

/** Begins where most is at stake: somebody has the claim, and perhaps does not come back in time. */
const withAnOwner: fc.Arbitrary<HistoryStep[]> = fc
	.tuple(firstOfAll, fc.option(leaseOver, { nil: null }), anything)
	.map(([first, over, rest]) => [first, ...(over ? [over] : []), ...rest]);

export const histories: fc.Arbitrary<HistoryStep[]> = fc.oneof(anything, withAnOwner);
