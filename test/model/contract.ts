/**
 * The contract's two tables, "What a claim decides" and Complete Claim's table of answers, as data. Nothing of `store/`
 * may be imported here, or the model test proves nothing. Where the contract is silent (a comment says so; the reasons of
 * history entries), the rows hold what the store does: there they notice a change, and cannot say which is right.
 */

export type State = 'received' | 'processing' | 'completed' | 'retryable_failure' | 'outcome_uncertain' | 'needs_review';
export type Operation = 'claim' | 'receive' | 'deduplicate';
export type Environment = 'live' | 'test';
export type LeasePolicy = 'outcomeUncertain' | 'takeOver';
export type OutcomeKind = 'completed' | 'noActionNeeded' | 'retryableFailure' | 'outcomeUncertain' | 'needsReview' | 'extendLease';

/** What one row of the first table asks of the record and of the delivery; all that is named must hold. */
export interface Found {
	token?: 'own' | 'another';
	state?: readonly State[];
	operation?: readonly Operation[];
	lease?: 'over' | 'running';
	whenLeaseExpires?: LeasePolicy;
	attemptsUsedUp?: true;
	due?: boolean;
	/** A test claim that is taken anew at each run, and the record is of another execution. */
	takenAnew?: true;
	/** The record's owner is another node of the claiming execution. */
	ownedByAnotherNode?: true;
}

/** What becomes of the record: see `model.ts`. */
export type ClaimWriting = 'nothing' | 'insert' | 'renewLease' | 'newOwner' | 'startOver' | 'needsReview' | 'outcomeUncertain';

export interface ClaimRow {
	/** The contract's words. */
	words: string;
	/** One of these must hold; empty: there is no record. */
	found: readonly Found[];
	answer: 'new' | 'duplicate' | 'error';
	/** `first`: the reason of the current ownership; `state`: the record's state. */
	reason: string | { the: 'first' | 'state' };
	writes: ClaimWriting;
	/** The reason in the history entry of what is written; null when there is no entry. */
	history: string | null;
}

/** Rows apply from the top. */
export const WHAT_A_CLAIM_DECIDES: readonly ClaimRow[] = [
	{ words: 'none', found: [], answer: 'new', reason: 'first_delivery', writes: 'insert', history: 'first_delivery' },
	{
		words: 'own token; processing',
		found: [{ token: 'own', state: ['processing'] }],
		answer: 'new',
		reason: { the: 'first' },
		writes: 'renewLease',
		history: null,
	},
	{
		words: 'own token; outcome_uncertain',
		found: [{ token: 'own', state: ['outcome_uncertain'] }],
		answer: 'new',
		reason: { the: 'first' },
		writes: 'renewLease',
		history: 'recognised_by_its_owner',
	},
	{
		// Of `deduplicate` the table does not speak: a retry recognises its own claim there too.
		words: 'own token; with receive: received; with deduplicate: completed',
		found: [
			{ token: 'own', state: ['received'], operation: ['receive'] },
			{ token: 'own', state: ['completed'], operation: ['deduplicate'] },
		],
		answer: 'new',
		reason: { the: 'first' },
		writes: 'nothing',
		history: null,
	},
	{ words: 'alwaysNew: in test, taken anew at each run', found: [{ takenAnew: true }], answer: 'new', reason: 'first_delivery', writes: 'startOver', history: 'new_test_run' },
	{
		words: 'received; claim',
		found: [{ state: ['received'], operation: ['claim', 'deduplicate'] }],
		answer: 'new',
		reason: 'received',
		writes: 'newOwner',
		history: 'received',
	},
	{
		words: 'completed / needs_review / outcome_uncertain / received (receive)',
		found: [{ state: ['completed', 'needs_review', 'outcome_uncertain', 'received'] }],
		answer: 'duplicate',
		reason: { the: 'state' },
		writes: 'nothing',
		history: null,
	},
	{
		words: 'retryable_failure, or processing with the lease over and takeOver; attempts used up',
		found: [
			{ state: ['retryable_failure'], attemptsUsedUp: true },
			{ state: ['processing'], lease: 'over', whenLeaseExpires: 'takeOver', attemptsUsedUp: true },
		],
		answer: 'duplicate',
		reason: 'needs_review',
		writes: 'needsReview',
		history: 'attempts_used_up',
	},
	{ words: 'retryable_failure, not due', found: [{ state: ['retryable_failure'], due: false }], answer: 'duplicate', reason: 'retry_pending', writes: 'nothing', history: null },
	// `receive` begins no work, so it takes nothing over.
	{ words: 'retryable_failure, due; receive', found: [{ state: ['retryable_failure'], operation: ['receive'] }], answer: 'duplicate', reason: 'retry_pending', writes: 'nothing', history: null },
	{ words: 'retryable_failure, due', found: [{ state: ['retryable_failure'], due: true }], answer: 'new', reason: 'retry', writes: 'newOwner', history: 'retry' },
	{
		words: 'processing, lease over, takeOver; receive',
		found: [{ state: ['processing'], lease: 'over', whenLeaseExpires: 'takeOver', operation: ['receive'] }],
		answer: 'duplicate',
		reason: 'in_progress',
		writes: 'nothing',
		history: null,
	},
	{
		words: 'processing, lease over, takeOver',
		found: [{ state: ['processing'], lease: 'over', whenLeaseExpires: 'takeOver' }],
		answer: 'new',
		reason: 'lease_expired',
		writes: 'newOwner',
		history: 'lease_expired',
	},
	{
		words: 'processing, lease over, outcomeUncertain',
		found: [{ state: ['processing'], lease: 'over', whenLeaseExpires: 'outcomeUncertain' }],
		answer: 'duplicate',
		reason: 'outcome_uncertain',
		writes: 'outcomeUncertain',
		history: 'lease_expired',
	},
	{
		words: 'processing, lease running; the owner is another node of this same execution',
		found: [{ state: ['processing'], lease: 'running', ownedByAnotherNode: true }],
		answer: 'error',
		reason: 'invalid_setting',
		writes: 'nothing',
		history: null,
	},
	{ words: 'processing, lease running', found: [{ state: ['processing'], lease: 'running' }], answer: 'duplicate', reason: 'in_progress', writes: 'nothing', history: null },
];

/** What a test claim is told that meets a live record; nothing of that record is changed. */
export const DUPLICATE_OF_LIVE: Readonly<Record<State, string>> = {
	received: 'received',
	processing: 'in_progress',
	completed: 'completed',
	retryable_failure: 'retry_pending',
	outcome_uncertain: 'outcome_uncertain',
	needs_review: 'needs_review',
};

export interface OutcomeFound {
	token?: 'own' | 'another';
	state?: readonly State[];
	outcome?: readonly OutcomeKind[];
	/** The record has the reference that is asked for (`noActionNeeded`: none). */
	sameReference?: true;
	attemptsUsedUp?: true;
	underLease?: false;
	resolved?: true;
}

/** What becomes of the record: see `model.ts`. */
export type OutcomeWriting = 'nothing' | 'outcome' | 'noteReference';

export interface OutcomeRow {
	/** The contract's words. */
	words: string;
	/** One of these must hold; empty: there is no record. */
	found: readonly OutcomeFound[];
	answer: 'recorded' | 'stale';
	/** `already`: `already_<state>`. */
	reason: string | null | { the: 'already' };
	writes: OutcomeWriting;
}

/** Rows apply from the top. */
export const WHAT_AN_OUTCOME_IS_ANSWERED: readonly OutcomeRow[] = [
	{ words: 'no row', found: [], answer: 'stale', reason: 'not_found', writes: 'nothing' },
	{
		words: 'own token, already as asked (completed: same reference)',
		found: [
			{ token: 'own', state: ['completed'], outcome: ['completed', 'noActionNeeded'], sameReference: true },
			{ token: 'own', state: ['retryable_failure'], outcome: ['retryableFailure'] },
			// "with attempts used up records needs_review": then needs_review is what was asked for.
			{ token: 'own', state: ['needs_review'], outcome: ['retryableFailure'], attemptsUsedUp: true },
			// Under a lease somebody is at work on it, and that it is still uncertain is news.
			{ token: 'own', state: ['outcome_uncertain'], outcome: ['outcomeUncertain'], underLease: false },
			{ token: 'own', state: ['needs_review'], outcome: ['needsReview'] },
		],
		answer: 'recorded',
		reason: null,
		writes: 'nothing',
	},
	{ words: 'own token, processing or outcome_uncertain (also past the lease); any outcome', found: [{ token: 'own', state: ['processing', 'outcome_uncertain'] }], answer: 'recorded', reason: null, writes: 'outcome' },
	{
		words: 'own token, retryable_failure or needs_review; completed or noActionNeeded',
		found: [{ token: 'own', state: ['retryable_failure', 'needs_review'], outcome: ['completed', 'noActionNeeded'] }],
		answer: 'recorded',
		reason: null,
		writes: 'outcome',
	},
	{ words: 'own token, anything else', found: [{ token: 'own' }], answer: 'stale', reason: { the: 'already' }, writes: 'noteReference' },
	{ words: 'another token: completed', found: [{ token: 'another', state: ['completed'] }], answer: 'stale', reason: 'already_completed', writes: 'noteReference' },
	{ words: 'another token: settled by an operator', found: [{ token: 'another', resolved: true }], answer: 'stale', reason: 'resolved', writes: 'noteReference' },
	{ words: 'another token: else', found: [{ token: 'another' }], answer: 'stale', reason: 'taken_over', writes: 'noteReference' },
];

/** The state that an outcome records, while attempts are left. */
export const STATE_OF_OUTCOME: Readonly<Record<Exclude<OutcomeKind, 'extendLease'>, State>> = {
	completed: 'completed',
	noActionNeeded: 'completed',
	retryableFailure: 'retryable_failure',
	outcomeUncertain: 'outcome_uncertain',
	needsReview: 'needs_review',
};
