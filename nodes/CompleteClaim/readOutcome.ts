import type { IExecuteFunctions } from 'n8n-workflow';
import type { OutcomeKind } from '../../store/decisions';
import { mendText } from '../../store/identity';
import { resultToStore } from '../../store/payload';
import type { OutcomeRequest } from '../../store/statements/recordOutcomes';
import { MAX_LEASE_SECONDS, readParameter, readWholeNumber } from '../shared/parameters';

/** What is to be recorded for one item, but for the claim that it is recorded on. */
export type OutcomeWords = Omit<OutcomeRequest, 'claim'>;

const DEFAULT_RETRY_SECONDS = 60;
/** Longest delay before a retry, in seconds. */
const MAX_RETRY_SECONDS = 24 * 60 * 60;

/** @throws ClaimError `invalid_setting` */
export function readOutcomeWords(context: IExecuteFunctions, outcome: OutcomeKind, options: Record<string, unknown>, itemIndex: number): OutcomeWords {
	const has = (parameter: keyof typeof PARAMETERS) => PARAMETERS[parameter].includes(outcome);
	const read = (parameter: string, label: string, fallback: unknown) => readParameter(context, parameter, label, itemIndex, fallback);
	return {
		reference: has('outcomeReference') ? mendText(read('outcomeReference', 'Outcome Reference', ''), MAX_REFERENCE_CHARACTERS) : null,
		reason: has('reason') ? mendText(read('reason', 'Reason', ''), MAX_REASON_CHARACTERS) : null,
		result: outcome === 'extendLease' ? null : resultToStore(options.result),
		keepPayload: options.keepPayload === true || options.keepPayload === 'true',
		retryAfterSeconds: has('retryAfterSeconds') ? readRetryAfter(read('retryAfterSeconds', 'Retry After (Seconds)', DEFAULT_RETRY_SECONDS)) : 0,
		leaseSeconds: has('leaseSeconds') ? readWholeNumber('Lease (Seconds)', read('leaseSeconds', 'Lease (Seconds)', 300), 1, MAX_LEASE_SECONDS) : 0,
	};
}

/** Which outcomes show which parameter. */
export const PARAMETERS = {
	outcomeReference: ['completed', 'retryableFailure', 'outcomeUncertain', 'needsReview'],
	reason: ['noActionNeeded', 'retryableFailure', 'outcomeUncertain', 'needsReview'],
	retryAfterSeconds: ['retryableFailure'],
	leaseSeconds: ['extendLease'],
} satisfies Record<string, OutcomeKind[]> as Record<'outcomeReference' | 'reason' | 'retryAfterSeconds' | 'leaseSeconds', OutcomeKind[]>;

const MAX_REFERENCE_CHARACTERS = 2000;
const MAX_REASON_CHARACTERS = 1000;

/** Often a Retry-After header: what is no number of seconds means the default, since a refusal would leave the claim open. */
function readRetryAfter(value: unknown): number {
	const seconds = typeof value === 'number' || (typeof value === 'string' && value.trim() !== '') ? Number(value) : NaN;
	return Number.isFinite(seconds) ? Math.min(MAX_RETRY_SECONDS, Math.max(0, Math.ceil(seconds))) : DEFAULT_RETRY_SECONDS;
}
