import type { Doubt } from '../connection/connection';
import { STATES_THAT_ACCEPT, type OutcomeKind } from '../decisions';
import type { Ownership } from '../handle';
import { recordsOf, RECORD_COLUMN, type ClaimRecord, type Owner } from '../record';
import { alsoHolds, BOUNDED_WAIT, builtOnce, historyEntry, itemsOf, KEY_RECORD, OWNER_RECORD, purgeAfter, SAME_CLAIM } from '../sql';
import type { ClaimTable } from '../table/claimTable';

/** What became of one claim, in the words of its current owner. */
export interface OutcomeRequest {
	readonly claim: Ownership;
	/** The ID of what the action created, for `completed`, or evidence for the other outcomes. */
	readonly reference: string | null;
	readonly reason: string | null;
	/** JSON text, see `resultToStore`. */
	readonly result: string | null;
	readonly keepPayload: boolean;
	/** Seconds until a retryable failure is due again; doubles at each attempt, at most a day; 0 is at once. */
	readonly retryAfterSeconds: number;
	/** Seconds of a full lease from now, for `extendLease`. */
	readonly leaseSeconds: number;
}

/** A request, and who makes it. */
export interface OutcomeCall {
	readonly caller: Owner;
	readonly request: OutcomeRequest;
}

/**
 * Records outcomes. Ownership is checked in the same UPDATE that writes: token and state. A claim that is missing
 * from the answer was not changed; reading it tells why. Each claim may be named once.
 *
 * @returns the changed records, by `identityText`
 * @throws ClaimError
 */
export async function recordOutcomes(table: ClaimTable, outcome: OutcomeKind, calls: readonly OutcomeCall[], doubt: Doubt): Promise<Map<string, ClaimRecord>> {
	const several = calls.length > 1;
	const rows = await table.send({
		writes: true,
		separable: several,
		prepare: !several,
		doubt,
		text: outcomeText(table.name, outcome, several),
		values: [JSON.stringify(calls.map(outcomeOf))],
	});
	return recordsOf(rows);
}

/** As columns of the statement's JSON parameter; written out for speed, as `ownershipOf` is. */
function outcomeOf({ caller, request: { claim, reference, reason, result, keepPayload, retryAfterSeconds, leaseSeconds } }: OutcomeCall) {
	return {
		delivery_id: claim.identity.deliveryId,
		source: claim.identity.source,
		account: claim.identity.account,
		action: claim.identity.action,
		environment: claim.identity.environment,
		instance_id: caller.instanceId,
		workflow_id: caller.workflowId,
		execution_id: caller.executionId,
		node_id: caller.nodeId,
		node_name: caller.nodeName,
		owner_token: claim.ownerToken,
		reference,
		reason,
		result,
		keep_payload: keepPayload,
		retry_after: retryAfterSeconds,
		lease_seconds: leaseSeconds,
	};
}

const outcomeText = builtOnce(
	(table: string, outcome: OutcomeKind, several: boolean) => `
		UPDATE ${table} AS claim
		   SET ${SETTERS[outcome]}
		  FROM ${BOUNDED_WAIT}, ${itemsOf(
				'$2',
				`${KEY_RECORD}, owner_token text, reference text, reason text, result text, keep_payload boolean,
				retry_after double precision, lease_seconds integer, ${OWNER_RECORD}`,
				several,
			)}
		 WHERE ${SAME_CLAIM}
		   AND claim.owner_token = item.owner_token
		   AND ${alsoHolds(`claim.state IN (${STATES_THAT_ACCEPT[outcome].map((state) => `'${state}'`).join(', ')})`)}
		   AND ${NOT_ALREADY_SO[outcome] ?? 'true'}
		RETURNING ${RECORD_COLUMN}`,
);

/** A repeat that would only add noise to the history; `decideOutcome` answers it from the record. */
const NOT_ALREADY_SO: Partial<Record<OutcomeKind, string>> = {
	outcomeUncertain: `NOT (claim.state = 'outcome_uncertain' AND claim.lease_expires_at IS NULL)`,
};

const FINISHED = `payload = CASE WHEN item.keep_payload THEN claim.payload END,
	payload_complete = claim.payload_complete AND item.keep_payload`;

/** At most a day, which also keeps the interval from overflowing; the exponent is capped because the number would. */
const BACKOFF = `make_interval(secs => least(86400, item.retry_after * 2 ^ least(claim.attempt - 1, 30)))`;

const SPENT = 'claim.attempt >= claim.max_attempts';

function settle(state: string, extra = ''): string {
	const entry = historyEntry({
		state,
		version: 'claim.version',
		attempt: 'claim.attempt',
		workflow: 'item.workflow_id',
		execution: 'item.execution_id',
		by: 'item.node_name',
		reason: 'item.reason',
		reference: 'item.reference',
	});
	return `state = ${state}, lease_expires_at = NULL, updated_at = clock_timestamp(),
		retry_at = ${state === RETRY_STATE ? `CASE WHEN NOT (${SPENT}) THEN clock_timestamp() + ${BACKOFF} END` : 'NULL'},
		outcome_reference = item.reference, outcome_result = item.result::json, outcome_reason = item.reason, outcome_recorded_at = clock_timestamp(),
		purge_after = ${purgeAfter(state, 'claim.environment', 'claim.retention_days')},
		history = claim.history || ${entry}${extra && `,\n\t\t${extra}`}`;
}

const RETRY_STATE = `CASE WHEN ${SPENT} THEN 'needs_review' ELSE 'retryable_failure' END`;

const SAME_EXECUTION = 'claim.owner_instance_id = item.instance_id AND claim.owner_execution_id = item.execution_id';

const SETTERS: Readonly<Record<OutcomeKind, string>> = {
	completed: settle(`'completed'`, FINISHED),
	noActionNeeded: settle(`'completed'`, FINISHED),
	retryableFailure: settle(RETRY_STATE),
	outcomeUncertain: settle(`'outcome_uncertain'`),
	needsReview: settle(`'needs_review'`),
	/** The calling execution becomes the owner on record; inside the owning execution its claiming node stays named. */
	extendLease: `lease_expires_at = clock_timestamp() + make_interval(secs => item.lease_seconds), updated_at = clock_timestamp(),
		owner_node_id = CASE WHEN ${SAME_EXECUTION} THEN claim.owner_node_id ELSE item.node_id END,
		owner_node_name = CASE WHEN ${SAME_EXECUTION} THEN claim.owner_node_name ELSE item.node_name END,
		owner_instance_id = item.instance_id, owner_workflow_id = item.workflow_id, owner_execution_id = item.execution_id`,
};
