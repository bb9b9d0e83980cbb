import type { IExecuteFunctions } from 'n8n-workflow';
import type { OutcomeKind } from '../../store/decisions';
import { readNote } from '../../store/identity';
import { resultToStore } from '../../store/payload';
import type { OutcomeRequest } from '../../store/statements/recordOutcomes';
import { MAX_LEASE_SECONDS, readParameter, readWholeNumber } from '../shared/parameters';

/** What is to be recorded for one item, but for the claim that it is recorded on. */
export type OutcomeWords = Omit<OutcomeRequest, 'claim'>;

/** Longest delay before the first retry, in seconds: later ones are capped at a day as well. */
const MAX_RETRY_SECONDS = 24 * 60 * 60;

/** @throws ClaimError `invalid_setting` */
export function readOutcomeWords(context: IExecuteFunctions, outcome: OutcomeKind, options: Record<string, unknown>, itemIndex: number): OutcomeWords {
	const has = (parameter: keyof typeof PARAMETERS) => PARAMETERS[parameter].includes(outcome);
	const read = (parameter: string, label: string, fallback: unknown) => readParameter(context, parameter, label, itemIndex, fallback);
	return {
		reference: has('outcomeReference') ? readNote('The Outcome Reference', read('outcomeReference', 'Outcome Reference', '')) : null,
		reason: has('reason') ? readReason(read('reason', 'Reason', '')) : null,
		result: outcome === 'extendLease' ? null : resultToStore(parsed(options.result)),
		keepPayload: options.keepPayload === true,
		retryAfterSeconds: has('retryAfterSeconds') ? readWholeNumber('Retry After (Seconds)', read('retryAfterSeconds', 'Retry After (Seconds)', 60), 0, MAX_RETRY_SECONDS) : 0,
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

/** n8n hands on what was typed into a JSON field as text. What is not JSON is a text. */
function parsed(value: unknown): unknown {
	if (typeof value !== 'string') return value;
	try {
		return JSON.parse(value) as unknown;
	} catch {
		return value;
	}
}

const MAX_REASON_CHARACTERS = 1000;

/** A reason is for people: rather cut or mended than refused, since a refusal would leave the claim open. */
function readReason(value: unknown): string | null {
	if (value === undefined || value === null || value === '') return null;
	const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
	const clean = text.replace(/\p{Cs}/gu, '\uFFFD').replace(/\0/g, '\uFFFD');
	return clean.length > MAX_REASON_CHARACTERS ? `${[...clean].slice(0, MAX_REASON_CHARACTERS).join('')}…` : clean;
}
