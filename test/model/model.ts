import {
	DUPLICATE_OF_LIVE,
	STATE_OF_OUTCOME,
	WHAT_A_CLAIM_DECIDES,
	WHAT_AN_OUTCOME_IS_ANSWERED,
	type ClaimRow,
	type ClaimWriting,
	type Environment,
	type Found,
	type LeasePolicy,
	type Operation,
	type OutcomeFound,
	type OutcomeKind,
	type OutcomeRow,
	type State,
} from './contract';

/**
 * A claim store of a few lines: reads the contract's tables row by row and keeps records in memory. Pure functions;
 * time is a number of seconds that only the test moves. What the contract leaves open (the payload at a takeover, what a
 * claim that is given back keeps) is here as the store does it.
 */

/** A text that the contract does not word, but asks for. */
export const SOME_TEXT = '(some text)';

const DAY = 86_400;

/** A transition of a claim, as `history` keeps it. */
export interface Entry {
	state: State;
	version: number;
	attempt: number;
	/** Null: an operator's. */
	execution: string | null;
	by: string;
	reason: string | null;
	reference: string | null;
}

/** What a stale call says that it created; kept beside the transitions. */
export interface Note {
	version: number;
	execution: string;
	reference: string;
}

export interface Record_ {
	state: State;
	version: number;
	attempt: number;
	token: string;
	/** Why its owner got it. */
	reason: string;
	operation: Operation;
	execution: string;
	node: string;
	resolvedBy: string | null;
	leaseSeconds: number;
	whenLeaseExpires: LeasePolicy;
	maxAttempts: number;
	retentionDays: number;
	fingerprint: string | null;
	payload: boolean;
	outcome: { reference: string | null; reason: string | null; result: unknown } | null;
	/** Instants, in the test's seconds. */
	leaseEnds: number | null;
	retryAt: number | null;
	/** When a live claim may be forgotten; of test claims see `ownedSince`. */
	purgeAt: number | null;
	ownedSince: number;
	/** When the delivery first came. */
	firstSeen: number;
	writtenAt: number;
	history: Entry[];
	notes: Note[];
}

/** The records of one delivery. */
export type Pair = Readonly<Record<Environment, Record_ | null>>;

export interface Delivery {
	environment: Environment;
	token: string;
	operation: Operation;
	execution: string;
	node: string;
	takenAnewEachRun: boolean;
	fingerprint: string | null;
	mismatchIsAnError: boolean;
	payload: boolean;
	leaseSeconds: number;
	whenLeaseExpires: LeasePolicy;
	maxAttempts: number;
	retentionDays: number;
}

export interface Outcome {
	environment: Environment;
	token: string;
	/** Of the handle. */
	version: number;
	outcome: OutcomeKind;
	reference: string | null;
	reason: string | null;
	result: unknown;
	keepPayload: boolean;
	retryAfterSeconds: number;
	leaseSeconds: number;
	/** The calling execution. */
	execution: string;
	node: string;
}

export interface PutBack {
	environment: Environment;
	token: string;
	execution: string;
	node: string;
	reason: string;
}

/** An operator's decision on the record that was seen. */
export interface Decided {
	environment: Environment;
	seen: { token: string; version: number; state: State };
	decision: OperatorDecision;
	by: string;
	reason: string;
	reference: string | null;
}

export type OperatorDecision = 'completed' | 'release' | 'needsReview' | 'noActionNeeded';

/** The token of a claim that an operator has decided on: nobody has it. */
export const OPERATORS_TOKEN = '(an operator)';

export type Action = { kind: 'decide'; decide: Decided } | { kind: 'claim'; claim: Delivery } | { kind: 'settle'; settle: Outcome } | { kind: 'putBack'; putBack: PutBack };

/** What the model says to one item, and the record as it is then. */
export interface Answer {
	verdict: 'new' | 'duplicate' | 'recorded' | 'stale' | 'error' | 'done' | 'resolved' | 'changed' | 'not_found';
	reason: string | null;
	payloadChanged: boolean | null;
	record: Record_ | null;
	/** Which row of the contract's tables it comes from. */
	row: string;
}

export interface Step {
	answer: Answer;
	pair: Pair;
}

export function apply(pair: Pair, action: Action, now: number): Step {
	switch (action.kind) {
		case 'claim':
			return claim(pair, action.claim, now);
		case 'settle':
			return settle(pair, action.settle, now);
		case 'putBack':
			return putBack(pair, action.putBack, now);
		case 'decide':
			return decide(pair, action.decide, now);
	}
}

function claim(pair: Pair, delivery: Delivery, now: number): Step {
	const { environment } = delivery;
	if (environment === 'test' && !delivery.takenAnewEachRun && pair.live !== null) {
		const payloadChanged = changed(pair.live, delivery);
		if (payloadChanged && delivery.mismatchIsAnError) return { pair, answer: { verdict: 'error', reason: 'payload_mismatch', payloadChanged, record: pair.live, row: 'payload mismatch' } };
		return { pair, answer: { verdict: 'duplicate', reason: DUPLICATE_OF_LIVE[pair.live.state], payloadChanged, record: pair.live, row: 'a test claim with a live record' } };
	}
	const record = pair[environment];
	const row = WHAT_A_CLAIM_DECIDES.find(({ found }) => (record === null ? found.length === 0 : found.some((condition) => holds(condition, record, delivery, now))));
	if (row === undefined) throw new Error(`The contract's table has no row for ${JSON.stringify({ record, delivery })}`);

	// Against the record of an earlier test run that does not count, nothing is compared.
	const payloadChanged = record === null || row.writes === 'startOver' ? null : changed(record, delivery);
	// Decided before any write.
	if (payloadChanged && delivery.mismatchIsAnError) return { pair, answer: { verdict: 'error', reason: 'payload_mismatch', payloadChanged, record, row: 'payload mismatch' } };

	const written = write(row, record, delivery, now);
	const reason = typeof row.reason === 'string' ? row.reason : row.reason.the === 'first' ? written.reason : written.state;
	return { pair: { ...pair, [environment]: written }, answer: { verdict: row.answer, reason, payloadChanged, record: written, row: row.words } };
}

function changed(record: Record_, delivery: Delivery): boolean | null {
	return record.fingerprint === null || delivery.fingerprint === null ? null : record.fingerprint !== delivery.fingerprint;
}

function holds(found: Found, record: Record_, delivery: Delivery, now: number): boolean {
	const own = record.token === delivery.token;
	const sameExecution = record.execution === delivery.execution;
	return (
		(found.token === undefined || (found.token === 'own') === own) &&
		(found.state?.includes(record.state) ?? true) &&
		(found.operation?.includes(delivery.operation) ?? true) &&
		(found.lease === undefined || (found.lease === 'over') === isOver(record.leaseEnds, now)) &&
		(found.whenLeaseExpires === undefined || found.whenLeaseExpires === record.whenLeaseExpires) &&
		(found.attemptsUsedUp === undefined || record.attempt >= record.maxAttempts) &&
		(found.due === undefined || found.due === isOver(record.retryAt, now)) &&
		(found.takenAnew === undefined || (delivery.environment === 'test' && delivery.takenAnewEachRun && !sameExecution)) &&
		(found.ownedByAnotherNode === undefined || (sameExecution && record.node !== delivery.node))
	);
}

function isOver(instant: number | null, now: number): boolean {
	return instant !== null && instant <= now;
}

/** State and attempt in which an ownership begins. */
const OPENING: Readonly<Record<Operation, { state: State; attempt: number }>> = {
	claim: { state: 'processing', attempt: 1 },
	receive: { state: 'received', attempt: 0 },
	deduplicate: { state: 'completed', attempt: 1 },
};

function write(row: ClaimRow, record: Record_ | null, delivery: Delivery, now: number): Record_ {
	const written = WRITINGS[row.writes](record as Record_, delivery, now);
	if (row.writes === 'nothing') return written;
	const reason = typeof row.reason === 'string' ? row.reason : written.reason;
	const reasonOfOwner = row.answer === 'new' ? reason : written.reason;
	const { state, version, attempt } = written;
	const { execution, node: by } = delivery;
	const entries = row.history === null ? [] : [{ state, version, attempt, execution, by, reason: row.history, reference: null }];
	return { ...written, reason: reasonOfOwner, writtenAt: now, history: [...written.history, ...entries] };
}

const WRITINGS: Readonly<Record<ClaimWriting, (record: Record_, delivery: Delivery, now: number) => Record_>> = {
	nothing: (record) => record,

	insert: (_none, delivery, now) => ({
		...ownership(delivery, now),
		...OPENING[delivery.operation],
		version: 1,
		reason: 'first_delivery',
		operation: delivery.operation,
		firstSeen: now,
		fingerprint: delivery.fingerprint,
		payload: delivery.payload,
		history: [],
		notes: [],
	}),

	renewLease: (record, _delivery, now) => ({ ...record, state: 'processing', leaseEnds: now + record.leaseSeconds, outcome: null }),

	newOwner: (record, delivery, now) => ({
		...record,
		...ownership(delivery, now),
		state: OPENING[delivery.operation].state,
		version: record.version + 1,
		attempt: record.attempt + 1,
		// Kept until the claim is finished; what could not be kept of the first delivery, its copy brings.
		payload: delivery.operation !== 'deduplicate' && (record.payload || delivery.payload),
	}),

	startOver: (record, delivery, now) => ({
		...record,
		...ownership(delivery, now),
		...OPENING[delivery.operation],
		version: record.version + 1,
		operation: delivery.operation,
		firstSeen: now,
		fingerprint: delivery.fingerprint,
		payload: delivery.payload,
	}),

	needsReview: (record) => ({ ...record, state: 'needs_review', leaseEnds: null, retryAt: null, outcome: record.outcome ?? { reference: null, reason: SOME_TEXT, result: null } }),

	outcomeUncertain: (record) => ({ ...record, state: 'outcome_uncertain', leaseEnds: null, outcome: { reference: null, reason: SOME_TEXT, result: null } }),
};

/** What every new ownership writes; its settings too, which whoever comes later reads from the record. */
function ownership(delivery: Delivery, now: number) {
	const { token, execution, node, operation, leaseSeconds, whenLeaseExpires, maxAttempts, retentionDays } = delivery;
	const { state } = OPENING[operation];
	return {
		token,
		execution,
		node,
		leaseSeconds,
		whenLeaseExpires,
		maxAttempts,
		retentionDays,
		reason: '',
		resolvedBy: null,
		outcome: state === 'completed' ? { reference: null, reason: null, result: null } : null,
		leaseEnds: state === 'processing' ? now + leaseSeconds : null,
		retryAt: null,
		purgeAt: state === 'completed' ? now + retentionDays * DAY : null,
		ownedSince: now,
		writtenAt: now,
	};
}

function settle(pair: Pair, asked: Outcome, now: number): Step {
	const record = pair[asked.environment];
	// Where nothing was to be done, nothing was created.
	const outcome = asked.outcome === 'noActionNeeded' ? { ...asked, reference: null } : asked;
	const row = WHAT_AN_OUTCOME_IS_ANSWERED.find(({ found }) => (record === null ? found.length === 0 : found.some((condition) => holdsFor(condition, record, outcome))));
	if (row === undefined) throw new Error(`The contract's table has no row for ${JSON.stringify({ record, asked })}`);
	const answer = { verdict: row.answer, reason: reasonOf(row, record), payloadChanged: null, record, row: row.words };
	if (record === null || row.writes === 'nothing') return { pair, answer };
	const written = row.writes === 'outcome' ? withOutcome(record, outcome, now) : withNote(record, outcome);
	return { pair: { ...pair, [asked.environment]: written }, answer: { ...answer, record: written } };
}

function reasonOf({ reason }: OutcomeRow, record: Record_ | null): string | null {
	return reason !== null && typeof reason === 'object' ? `already_${record?.state}` : reason;
}

function holdsFor(found: OutcomeFound, record: Record_, asked: Outcome): boolean {
	return (
		(found.token === undefined || (found.token === 'own') === (record.token === asked.token)) &&
		(found.state?.includes(record.state) ?? true) &&
		(found.outcome?.includes(asked.outcome) ?? true) &&
		(found.sameReference === undefined || (record.outcome?.reference ?? null) === asked.reference) &&
		(found.attemptsUsedUp === undefined || record.attempt >= record.maxAttempts) &&
		(found.underLease === undefined || record.leaseEnds === null) &&
		(found.resolved === undefined || record.resolvedBy !== null)
	);
}

function withOutcome(record: Record_, asked: Outcome, now: number): Record_ {
	const { execution, node, reference, reason, result } = asked;
	if (asked.outcome === 'extendLease') {
		// The calling execution becomes the owner on record. It changes no state and leaves no history entry.
		const owner = record.execution === execution ? {} : { execution, node };
		return { ...record, ...owner, leaseEnds: now + asked.leaseSeconds, writtenAt: now };
	}
	const usedUp = record.attempt >= record.maxAttempts;
	const state = asked.outcome === 'retryableFailure' && usedUp ? 'needs_review' : STATE_OF_OUTCOME[asked.outcome];
	const { version, attempt } = record;
	return {
		...record,
		state,
		leaseEnds: null,
		retryAt: state === 'retryable_failure' ? now + Math.min(DAY, asked.retryAfterSeconds * 2 ** (attempt - 1)) : null,
		purgeAt: state === 'completed' ? now + record.retentionDays * DAY : null,
		payload: record.payload && (state !== 'completed' || asked.keepPayload),
		outcome: { reference, reason, result },
		writtenAt: now,
		history: [...record.history, { state, version, attempt, execution, by: node, reason, reference }],
	};
}

/** A stale call's reference is kept, once. */
function withNote(record: Record_, { reference, version, execution }: Outcome): Record_ {
	if (reference === null || record.notes.some((note) => note.reference === reference && note.version === version)) return record;
	return { ...record, notes: [...record.notes, { version, execution, reference }] };
}

/** What a run has just claimed and cannot begin: due at once, and the attempt does not count. What `receive` stored stays. */
function putBack(pair: Pair, asked: PutBack, now: number): Step {
	const record = pair[asked.environment];
	const { execution, node: by, reason } = asked;
	const answer = { verdict: 'done' as const, reason: null, payloadChanged: null, record: null, row: 'put back' };
	if (record === null || record.token !== asked.token || !['processing', 'completed'].includes(record.state)) return { pair, answer };
	const { version } = record;
	const attempt = record.attempt - 1;
	const written: Record_ = {
		...record,
		state: 'retryable_failure',
		attempt,
		leaseEnds: null,
		retryAt: now,
		purgeAt: null,
		outcome: { reference: null, reason, result: null },
		writtenAt: now,
		history: [...record.history, { state: 'retryable_failure', version, attempt, execution, by, reason: 'put_back', reference: null }],
	};
	return { pair: { ...pair, [asked.environment]: written }, answer };
}

/** Whether an ordinary purge may remove a record, and whether it must: of a test claim the contract leaves open from when its days count. */
export function purgeOf(record: Record_, environment: Environment, now: number): 'never' | 'perhaps' | 'certainly' {
	if (environment === 'live') return record.purgeAt !== null && record.purgeAt <= now ? 'certainly' : 'never';
	const days = record.retentionDays * DAY;
	if (record.writtenAt + days <= now) return 'certainly';
	return record.ownedSince + days <= now ? 'perhaps' : 'never';
}

/** An operator settles an unfinished claim and fences off any owner; a record that has moved since it was seen is left alone. */
function decide(pair: Pair, decided: Decided, now: number): Step {
	const record = pair[decided.environment];
	const { seen, decision, by, reason, reference } = decided;
	const answerOf = (verdict: Answer['verdict'], shown: Record_ | null): Answer => ({ verdict, reason: null, payloadChanged: null, record: shown, row: `operator: ${verdict}` });
	if (record === null) return { pair, answer: answerOf('not_found', null) };
	const hasMoved = record.token !== seen.token || record.version !== seen.version || record.state !== seen.state;
	if (hasMoved || record.state === 'completed') return { pair, answer: answerOf('changed', record) };

	const state = STATE_OF_DECISION[decision];
	const version = record.version + 1;
	const { attempt } = record;
	const written: Record_ = {
		...record,
		state,
		version,
		token: OPERATORS_TOKEN,
		resolvedBy: by,
		leaseEnds: null,
		retryAt: decision === 'release' ? now : null,
		// For another attempt, even when all are used up.
		maxAttempts: decision === 'release' ? Math.max(record.maxAttempts, attempt + 1) : record.maxAttempts,
		purgeAt: state === 'completed' ? now + record.retentionDays * DAY : null,
		payload: record.payload && state !== 'completed',
		outcome: { reference, reason, result: null },
		writtenAt: now,
		history: [...record.history, { state, version, attempt, execution: null, by, reason, reference }],
	};
	return { pair: { ...pair, [decided.environment]: written }, answer: answerOf('resolved', written) };
}

const STATE_OF_DECISION: Readonly<Record<OperatorDecision, State>> = { completed: 'completed', noActionNeeded: 'completed', release: 'retryable_failure', needsReview: 'needs_review' };
