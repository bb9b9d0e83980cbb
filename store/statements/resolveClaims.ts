import type { Doubt } from '../connection/connection';
import type { SeenClaim } from '../handle';
import type { State } from '../record';
import { alsoHolds, BOUNDED_WAIT, historyEntry, itemsOf, KEY_RECORD, purgeAfter, SAME_CLAIM } from '../sql';
import type { ClaimTable } from '../table/claimTable';
import { keyOf } from '../request';
import { DETAIL_COLUMNS, detailsFrom, type ClaimDetails } from './findClaims';

/** What an operator decides about an unfinished claim. */
export type Resolution = 'completed' | 'noActionNeeded' | 'release' | 'needsReview';

/** One decision, about the record that the operator saw. */
export interface ResolveRequest {
	readonly seen: SeenClaim;
	readonly resolution: Resolution;
	/** The ID of what the action created, for `completed`. */
	readonly reference: string | null;
	readonly decidedBy: string;
	readonly reason: string;
	/** Random: the owner token from now on, which no owner has; a repeat of the statement knows its own write. */
	readonly ownerToken: string;
}

/**
 * Writes one decision, if the record is still the one that was seen. Whoever owned it until now is fenced off.
 *
 * @returns the changed record; undefined when it has moved, or this very decision is written already: reading tells
 * @throws ClaimError
 */
export async function resolveClaim(table: ClaimTable, request: ResolveRequest, doubt?: Doubt): Promise<ClaimDetails | undefined> {
	const { seen, resolution, reference, decidedBy, reason, ownerToken } = request;
	const { state, extra } = SETTERS[resolution];
	const entry = historyEntry({ state: `'${state}'`, version: 'claim.version + 1', attempt: 'claim.attempt', workflow: 'NULL', execution: 'NULL', by: '$3', reason: '$4', reference: '$5' });
	const [row] = await table.send({
		writes: true,
		doubt,
		text: `
			UPDATE ${table.name} AS claim
			   SET state = '${state}', version = claim.version + 1, owner_token = $6, resolved_by = $3, lease_expires_at = NULL, updated_at = clock_timestamp(),
			       outcome_reference = $5, outcome_result = NULL, outcome_reason = $4, outcome_recorded_at = clock_timestamp(),
			       purge_after = ${purgeAfter(`'${state}'`, 'claim.environment', 'claim.retention_days')},
			       history = claim.history || ${entry}, ${extra}
			  FROM ${BOUNDED_WAIT}, ${itemsOf('$2', `${KEY_RECORD}, owner_token text, version integer, state text`, false)}
			 WHERE ${SAME_CLAIM}
			   AND claim.owner_token = item.owner_token AND claim.version = item.version AND claim.state = item.state
			   AND ${alsoHolds(`claim.state <> 'completed'`)}
			RETURNING ${DETAIL_COLUMNS}`,
		values: [JSON.stringify([{ ...keyOf(seen.identity), owner_token: seen.ownerToken, version: seen.version, state: seen.state }]), decidedBy, reason, reference, ownerToken],
	});
	return row && detailsFrom(row);
}

const FINISHED = 'retry_at = NULL, payload = NULL, payload_complete = false';

const SETTERS: Readonly<Record<Resolution, { state: State; extra: string }>> = {
	completed: { state: 'completed', extra: FINISHED },
	noActionNeeded: { state: 'completed', extra: FINISHED },
	/** Due at once, and with an attempt left. */
	release: { state: 'retryable_failure', extra: 'retry_at = clock_timestamp(), max_attempts = greatest(claim.max_attempts, claim.attempt + 1)' },
	needsReview: { state: 'needs_review', extra: 'retry_at = NULL' },
};
