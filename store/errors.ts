/**
 * The closed set of things that can go wrong, and the one place where each is made.
 * Source of the kinds and of what each promises: the contract's "Kinds of Operational Error".
 */
export type ErrorKind =
	| 'missing_delivery_id'
	| 'invalid_delivery_id'
	| 'invalid_setting'
	| 'payload_mismatch'
	| 'store_unreachable'
	| 'store_denied'
	| 'store_misconfigured'
	| 'store_busy'
	| 'outcome_unknown'
	| 'unexpected';

export interface ErrorDetails {
	/** What to do about it, in one sentence. */
	hint?: string;
	/** True when the same delivery may succeed later without anybody changing a thing. */
	retryable?: boolean;
	/** The server's five-character SQLSTATE, where the server said one. */
	sqlState?: string;
}

/** What every function of the store throws, and puts into the answer of a single item. */
export class ClaimError extends Error {
	readonly kind: ErrorKind;
	readonly hint: string | null;
	readonly retryable: boolean;
	readonly sqlState: string | null;

	constructor(kind: ErrorKind, message: string, details: ErrorDetails = {}) {
		super(message);
		this.name = 'ClaimError';
		this.kind = kind;
		this.hint = details.hint ?? null;
		this.retryable = details.retryable ?? RETRYABLE_KINDS.has(kind);
		this.sqlState = details.sqlState ?? null;
	}
}

const RETRYABLE_KINDS: ReadonlySet<ErrorKind> = new Set(['store_unreachable', 'store_busy', 'outcome_unknown']);

const STORE_KINDS: ReadonlySet<ErrorKind> = new Set([
	'store_unreachable',
	'store_denied',
	'store_misconfigured',
	'store_busy',
	'outcome_unknown',
	'unexpected',
]);

/** Whether an error is the store's own trouble, not the delivery's or the setting's. */
export function isStoreTrouble(kind: ErrorKind): boolean {
	return STORE_KINDS.has(kind);
}

export function invalidSetting(message: string, hint: string): ClaimError {
	return new ClaimError('invalid_setting', message, { hint });
}

/** The row that a write gave back is not what was written. @param what as in "this claim" */
export function storedDifferently(what: string): ClaimError {
	return new ClaimError('store_misconfigured', `The database stored something else than ${what}`, {
		hint: 'A trigger on the claim table changes what is written: remove it.',
	});
}

/** A record that seems to move at every look may be one that a trigger keeps as it is. */
export const IF_IT_STAYS_SO = 'If it stays so, look for a trigger on the claim table that drops updates.';

export function outcomeUnknown(): ClaimError {
	return new ClaimError('outcome_unknown', 'A statement was sent, and no answer could be had: it may or may not have been carried out', {
		hint: 'Try again later, or let the sender deliver again: the record then shows what happened.',
	});
}

/** Anything that was thrown, as a ClaimError. What is not ours keeps its class name only: its text may hold data. */
export function asClaimError(thrown: unknown): ClaimError {
	if (thrown instanceof ClaimError) return thrown;
	const name = thrown instanceof Error ? thrown.name : typeof thrown;
	return new ClaimError('unexpected', `Something failed that should not fail (${name})`, {
		hint: 'Nothing was claimed by this item unless the claim table shows it. Please report this with the steps that lead to it.',
	});
}
