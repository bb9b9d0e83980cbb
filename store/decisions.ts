import type { ClaimReason, ClaimRecord, Operation, Owner, State } from './record';

/**
 * The contract's two decision tables, as pure functions over a record that was read. They write nothing: the
 * statements repeat the conditions, so a record that moved since is read and decided again.
 */

export type DuplicateReason = 'completed' | 'needs_review' | 'outcome_uncertain' | 'received' | 'retry_pending' | 'in_progress';

/** What must be written, and still be possible, before an answer holds. */
export type ClaimChange = 'renewLease' | 'takeOver' | 'startOver' | 'markUncertain' | 'giveUp';

export type ClaimDecision =
	| { verdict: 'new'; reason: ClaimReason; change: ClaimChange | null }
	| { verdict: 'duplicate'; reason: DuplicateReason; change: ClaimChange | null }
	| { verdict: 'misuse' };

/** Who asks, as far as the decision depends on it. */
export interface Claimant {
	operation: Operation;
	ownerToken: string;
	owner: Owner;
	/** Whether test claims are taken anew at each run; live ones never are. */
	takenAnewEachRun: boolean;
}

/** "What a claim decides", for a record that exists; rows apply from the top. */
export function decideClaim(record: ClaimRecord, claimant: Claimant): ClaimDecision {
	const { state } = record;
	const { operation } = claimant;

	if (record.ownerToken === claimant.ownerToken) {
		if (state === 'processing' || state === 'outcome_uncertain') return { verdict: 'new', reason: record.claimReason, change: 'renewLease' };
		// What this very run wrote before its answer was lost: nothing more is to be done.
		if (state === settledState(operation)) return { verdict: 'new', reason: record.claimReason, change: null };
	}
	if (claimant.takenAnewEachRun && record.identity.environment === 'test' && !sameExecution(record.owner, claimant.owner)) return { verdict: 'new', reason: 'first_delivery', change: 'startOver' };

	switch (state) {
		case 'received':
			if (operation === 'receive') return { verdict: 'duplicate', reason: 'received', change: null };
			return { verdict: 'new', reason: 'received', change: 'takeOver' };
		case 'completed':
		case 'needs_review':
		case 'outcome_uncertain':
			return { verdict: 'duplicate', reason: state, change: null };
		case 'retryable_failure':
			if (attemptsUsedUp(record)) return { verdict: 'duplicate', reason: 'needs_review', change: 'giveUp' };
			// `receive` begins no work: the retry stays for whoever does it.
			if (!record.retryDue || operation === 'receive') return { verdict: 'duplicate', reason: 'retry_pending', change: null };
			return { verdict: 'new', reason: 'retry', change: 'takeOver' };
		case 'processing':
			if (record.leaseOver && record.whenLeaseExpires === 'takeOver') {
				if (attemptsUsedUp(record)) return { verdict: 'duplicate', reason: 'needs_review', change: 'giveUp' };
				if (operation === 'receive') return { verdict: 'duplicate', reason: 'in_progress', change: null };
				return { verdict: 'new', reason: 'lease_expired', change: 'takeOver' };
			}
			if (record.leaseOver) return { verdict: 'duplicate', reason: 'outcome_uncertain', change: 'markUncertain' };
			if (sameExecution(record.owner, claimant.owner) && record.owner.nodeId !== claimant.owner.nodeId) return { verdict: 'misuse' };
			return { verdict: 'duplicate', reason: 'in_progress', change: null };
	}
}

/** The answer for a test claim that meets a live record: nothing of a live record is ever changed by a test. */
export function duplicateOfLive(record: ClaimRecord): DuplicateReason {
	switch (record.state) {
		case 'processing':
			return 'in_progress';
		case 'retryable_failure':
			return 'retry_pending';
		default:
			return record.state;
	}
}

/** The state in which an operation leaves a claim that needs no further word from its owner. */
function settledState(operation: Operation): State | null {
	return operation === 'receive' ? 'received' : operation === 'deduplicate' ? 'completed' : null;
}

function attemptsUsedUp(record: ClaimRecord): boolean {
	return record.attempt >= record.maxAttempts;
}

function sameExecution(a: Owner, b: Owner): boolean {
	return a.instanceId === b.instanceId && a.executionId === b.executionId;
}

export type OutcomeKind = 'completed' | 'noActionNeeded' | 'retryableFailure' | 'outcomeUncertain' | 'needsReview' | 'extendLease';

export type StaleReason = `already_${State}` | 'resolved' | 'taken_over' | 'not_found';

export type OutcomeDecision = { answer: 'alreadyRecorded' } | { answer: 'record' } | { answer: 'stale'; reason: StaleReason };

/** "Complete Claim", the table of answers; rows apply from the top. `record` is null when there is no row. */
export function decideOutcome(record: ClaimRecord | null, asked: { ownerToken: string; outcome: OutcomeKind; reference: string | null }): OutcomeDecision {
	if (record === null) return { answer: 'stale', reason: 'not_found' };
	const { state } = record;
	if (record.ownerToken !== asked.ownerToken) {
		if (state === 'completed') return { answer: 'stale', reason: 'already_completed' };
		return { answer: 'stale', reason: record.resolvedBy === null ? 'taken_over' : 'resolved' };
	}
	if (isAsAsked(record, asked)) return { answer: 'alreadyRecorded' };
	if (STATES_THAT_ACCEPT[asked.outcome].includes(state)) return { answer: 'record' };
	return { answer: 'stale', reason: `already_${state}` };
}

const OPEN: readonly State[] = ['processing', 'outcome_uncertain'];
const OPEN_OR_FAILED: readonly State[] = [...OPEN, 'retryable_failure', 'needs_review'];

/** From which states the current owner may record an outcome. */
export const STATES_THAT_ACCEPT: Readonly<Record<OutcomeKind, readonly State[]>> = {
	completed: OPEN_OR_FAILED,
	noActionNeeded: OPEN_OR_FAILED,
	retryableFailure: OPEN,
	outcomeUncertain: OPEN,
	needsReview: OPEN,
	extendLease: OPEN,
};

function isAsAsked(record: ClaimRecord, asked: { outcome: OutcomeKind; reference: string | null }): boolean {
	switch (asked.outcome) {
		case 'completed':
			return record.state === 'completed' && (record.outcome?.reference ?? null) === asked.reference;
		case 'noActionNeeded':
			return record.state === 'completed' && (record.outcome?.reference ?? null) === null;
		case 'retryableFailure':
			// With its attempts used up, the same request was recorded as needs_review.
			return record.state === 'retryable_failure' || (record.state === 'needs_review' && attemptsUsedUp(record));
		case 'outcomeUncertain':
			// Under a lease somebody is looking into it: then the word is news.
			return record.state === 'outcome_uncertain' && record.leaseExpiresAt === null;
		case 'needsReview':
			return record.state === 'needs_review';
		case 'extendLease':
			return false;
	}
}
