import { randomUUID } from 'node:crypto';
import type { Doubt } from './connection/connection';
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
	/** The same when the decision is made again by a repeated call, which then knows its own write; random when left out. */
	readonly id?: string;
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
	const ownerToken = `operator:${decision.id ?? randomUUID()}`;
	const doubt: Doubt = { inDoubt: false };
	const resolved = await resolveClaim(table, { ...decision, ownerToken }, doubt);
	if (resolved) return { answer: 'resolved', details: resolved };
	const details = await findClaimDetails(table, decision.seen.identity);
	if (details === undefined) return { answer: 'not_found', details: null };
	// By a sending whose answer was lost, or by an earlier call.
	const isWritten = details.record.ownerToken === ownerToken || (doubt.inDoubt && isInHistory(details, decision));
	return { answer: isWritten ? 'resolved' : 'changed', details };
}

/** Whether the decision is on record although the claim has moved on since: what is released may be taken at once. */
function isInHistory({ history }: ClaimDetails, { seen, decidedBy, reason }: Decision): boolean {
	return history.some((entry) => entry.version === seen.version + 1 && entry.by === decidedBy && entry.reason === reason);
}
