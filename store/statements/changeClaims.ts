import type { Doubt } from '../connection/connection';
import type { ClaimChange } from '../decisions';
import { recordFrom, RECORD_COLUMN, type ClaimRecord } from '../record';
import { ownershipOf, type ClaimCall } from '../request';
import { alsoHolds, BOUNDED_WAIT, builtOnce, historyEntry, itemsOf, KEY_RECORD, OWNERSHIP_RECORD, purgeAfter, SAME_CLAIM } from '../sql';
import type { ClaimTable } from '../table/claimTable';

/** What the decision was made on, and for whom. */
export interface ChangeOfClaim {
	seen: ClaimRecord;
	call: ClaimCall;
}

/**
 * Writes what a decision on an existing record asks for, in one UPDATE whose WHERE repeats what was seen (token,
 * version, state) and, by the database's clock, the lease or the retry time. Whoever was faster wins.
 *
 * @returns the records that were changed, by the owner token that they had before; the others have moved
 * @throws ClaimError
 */
export async function changeClaims(table: ClaimTable, change: ClaimChange, changes: readonly ChangeOfClaim[], doubt: Doubt): Promise<Map<string, ClaimRecord>> {
	const several = changes.length > 1;
	const rows = await table.send({
		writes: true,
		separable: several,
		prepare: !several,
		doubt,
		text: changeText(table.name, change, several),
		values: [
			JSON.stringify(changes.map(({ seen, call }) => ({ ...ownershipOf(call), seen_token: seen.ownerToken, seen_version: seen.version, seen_state: seen.state }))),
		],
	});
	return new Map(rows.map((row) => [row.seen_token ?? '', recordFrom(row)]));
}

const changeText = builtOnce(
	(table: string, change: ClaimChange, several: boolean) => `
		UPDATE ${table} AS claim
		   SET ${SETTERS[change]}
		  FROM ${BOUNDED_WAIT}, ${itemsOf('$2', `${KEY_RECORD}, seen_token text, seen_version integer, seen_state text, ${OWNERSHIP_RECORD}`, several)}
		 WHERE ${SAME_CLAIM}
		   AND claim.owner_token = item.seen_token AND claim.version = item.seen_version AND claim.state = item.seen_state
		   AND ${alsoHolds(STILL_SO[change])}
		RETURNING item.seen_token, ${RECORD_COLUMN}`,
);

/** The part of the condition that time decides; the database's clock, at the moment of the write. */
const STILL_SO: Readonly<Record<ClaimChange, string>> = {
	renewLease: 'true',
	takeOver: `(claim.state = 'received'
				OR (claim.state = 'retryable_failure' AND claim.retry_at <= clock_timestamp())
				OR (claim.state = 'processing' AND claim.lease_expires_at <= clock_timestamp()))`,
	startOver: 'true',
	markUncertain: 'claim.lease_expires_at <= clock_timestamp()',
	giveUp: `(claim.state = 'retryable_failure' OR claim.lease_expires_at <= clock_timestamp())`,
};

const NEW_OWNER = `
	owner_token = item.owner_token, version = claim.version + 1,
	owner_instance_id = item.instance_id, owner_workflow_id = item.workflow_id, owner_execution_id = item.execution_id,
	owner_node_id = item.node_id, owner_node_name = item.node_name, resolved_by = NULL,
	lease_seconds = item.lease_seconds, when_lease_expires = item.when_lease_expires,
	max_attempts = item.max_attempts, retention_days = item.retention_days,
	lease_expires_at = CASE WHEN item.state = 'processing' THEN clock_timestamp() + make_interval(secs => item.lease_seconds) END,
	retry_at = NULL, outcome_reference = NULL, outcome_result = NULL, outcome_reason = NULL,
	outcome_recorded_at = CASE WHEN item.state = 'completed' THEN clock_timestamp() END,
	state = item.state, updated_at = clock_timestamp(),
	purge_after = ${purgeAfter('item.state', 'claim.environment', 'item.retention_days')}`;

/** Why a record that was seen in a state is taken over. */
const TAKE_OVER_REASON = `CASE claim.state WHEN 'received' THEN 'received' WHEN 'retryable_failure' THEN 'retry' ELSE 'lease_expired' END`;

function entry(parts: { state: string; version: string; attempt: string; reason: string }): string {
	return `claim.history || ${historyEntry({ ...parts, workflow: 'item.workflow_id', execution: 'item.execution_id', by: 'item.node_name', reference: 'NULL' })}`;
}

const SETTERS: Readonly<Record<ClaimChange, string>> = {
	/** A run that meets its own claim again: it goes on, with a full lease. */
	renewLease: `state = 'processing', updated_at = clock_timestamp(),
		lease_expires_at = clock_timestamp() + make_interval(secs => claim.lease_seconds),
		outcome_reference = NULL, outcome_result = NULL, outcome_reason = NULL, outcome_recorded_at = NULL,
		history = CASE WHEN claim.state = 'processing' THEN claim.history ELSE
			${entry({ state: `'processing'`, version: 'claim.version', attempt: 'claim.attempt', reason: `'recognised_by_its_owner'` })} END`,

	/** Unfinished work gets a new owner. What was kept of the first delivery stays, unless nothing complete was. */
	takeOver: `${NEW_OWNER}, attempt = claim.attempt + 1, claim_reason = ${TAKE_OVER_REASON},
		payload = CASE WHEN item.state = 'completed' THEN NULL
			WHEN item.payload_complete AND NOT claim.payload_complete THEN item.payload::json ELSE claim.payload END,
		payload_complete = item.state <> 'completed' AND (claim.payload_complete OR item.payload_complete),
		history = ${entry({ state: 'item.state', version: 'claim.version + 1', attempt: 'claim.attempt + 1', reason: TAKE_OVER_REASON })}`,

	/** A test claim that begins anew at each run, as if the delivery had never been seen. */
	startOver: `${NEW_OWNER}, attempt = item.attempt, claim_reason = 'first_delivery', operation = item.operation, first_seen_at = clock_timestamp(),
		event_type = item.event_type, fingerprint = item.fingerprint,
		payload = item.payload::json, payload_complete = item.payload_complete,
		history = ${entry({ state: 'item.state', version: 'claim.version + 1', attempt: 'item.attempt', reason: `'new_test_run'` })}`,

	/** The lease ended without an outcome: the action may have happened. */
	markUncertain: `state = 'outcome_uncertain', lease_expires_at = NULL, updated_at = clock_timestamp(),
		outcome_reason = 'The lease ended before an outcome was recorded', outcome_recorded_at = clock_timestamp(),
		history = ${entry({ state: `'outcome_uncertain'`, version: 'claim.version', attempt: 'claim.attempt', reason: `'lease_expired'` })}`,

	/** All attempts are used up: a person must decide. */
	giveUp: `state = 'needs_review', lease_expires_at = NULL, retry_at = NULL, updated_at = clock_timestamp(),
		outcome_reason = coalesce(claim.outcome_reason, 'The lease of the last attempt ended before an outcome was recorded'),
		outcome_recorded_at = clock_timestamp(),
		history = ${entry({ state: `'needs_review'`, version: 'claim.version', attempt: 'claim.attempt', reason: `'attempts_used_up'` })}`,
};
