import { randomUUID } from 'node:crypto';
import type { SeenClaim } from './handle';
import { findClaimDetails, type ClaimDetails } from './statements/findClaims';
import { resolveClaim, type Resolution } from './statements/resolveClaims';
import type { ClaimTable } from './table/claimTable';

/** An operator's decision. */
export interface Decision {
	/** The record that the operator saw. */
	readonly seen: SeenClaim;
	readonly resolution: Resolution;
	readonly reference: string | null;
	readonly decidedBy: string;
	readonly reason: string;
}

/** `changed`: the record has moved since it was seen, and nothing was written; `details` is what it is now. */
export type ResolveAnswer = { answer: 'resolved'; details: ClaimDetails } | { answer: 'changed'; details: ClaimDetails } | { answer: 'not_found'; details: null };

/**
 * Settles an unfinished claim by a person's word and fences off whoever owned it. Nothing is written unless the record
 * is still the one that the person saw.
 *
 * @throws ClaimError
 */
export async function decide(table: ClaimTable, decision: Decision): Promise<ResolveAnswer> {
	const ownerToken = `operator:${randomUUID()}`;
	const resolved = await resolveClaim(table, { ...decision, ownerToken });
	if (resolved) return { answer: 'resolved', details: resolved };
	const details = await findClaimDetails(table, decision.seen.identity);
	if (details === undefined) return { answer: 'not_found', details: null };
	// Written by a sending whose answer was lost.
	return { answer: details.record.ownerToken === ownerToken ? 'resolved' : 'changed', details };
}
