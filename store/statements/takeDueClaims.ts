import type { Identity } from '../identity';
import { recordFrom, RECORD_COLUMN, type ClaimRecord, type Owner } from '../record';
import { BOUNDED_WAIT, historyEntry, KEY_COLUMNS, SAME_CLAIM } from '../sql';
import type { ClaimTable } from '../table/claimTable';

/** Which unfinished work is looked for. */
export const RECOVERABLE = ['received', 'retryableFailures', 'expiredLeases', 'uncertainOutcomes'] as const;
export type Recoverable = (typeof RECOVERABLE)[number];

/** One look for unfinished work of one job of one sender. */
export interface RecoveryRequest {
	readonly source: string;
	readonly action: string;
	readonly environment: Identity['environment'];
	readonly recover: readonly Recoverable[];
	/** Claims at the most. */
	readonly limit: number;
	/** Seconds of the new lease. */
	readonly leaseSeconds: number;
	/** Random, new for each look: a repeat of the statement knows what the first sending took. */
	readonly pollId: string;
}

/** A claim that is the poller's now. */
export interface RecoveredClaim {
	/** `ready`: the action may run. `reconcile`: it may have happened, so look at the destination first. */
	readonly course: 'ready' | 'reconcile';
	readonly record: ClaimRecord;
	/** The stored delivery; null when none was kept. */
	readonly payload: unknown;
}

/** The action has certainly not happened, or may be repeated; and everything is there to do it. */
const READY: Readonly<Record<Exclude<Recoverable, 'uncertainOutcomes'>, string>> = {
	received: `claim.state = 'received'`,
	retryableFailures: `(claim.state = 'retryable_failure' AND claim.retry_at <= clock_timestamp())`,
	expiredLeases: `(claim.state = 'processing' AND claim.when_lease_expires = 'takeOver' AND claim.lease_expires_at <= clock_timestamp())`,
};
/** Nobody knows whether the action happened, and nobody is looking into it. */
const UNCERTAIN: Readonly<Partial<Record<Recoverable, string>>> = {
	expiredLeases: `(claim.state = 'processing' AND claim.when_lease_expires = 'outcomeUncertain' AND claim.lease_expires_at <= clock_timestamp())`,
	uncertainOutcomes: `(claim.state = 'outcome_uncertain' AND (claim.lease_expires_at IS NULL OR claim.lease_expires_at <= clock_timestamp()))`,
};

/** How often the current attempt was looked into already. */
const RECONCILIATIONS = `(SELECT count(*) FROM jsonb_array_elements(claim.history) AS entry
	WHERE entry ->> 'reason' = 'reconciliation' AND (entry ->> 'attempt')::integer = claim.attempt)`;

/**
 * Takes over what is due, oldest first; pollers that look at the same time share nothing and wait for nobody. Work
 * whose attempts or reconciliations are used up goes to needs_review instead.
 *
 * @throws ClaimError
 */
export async function takeDueClaims(table: ClaimTable, owner: Owner, request: RecoveryRequest): Promise<RecoveredClaim[]> {
	const ready = anyOf(request.recover.map((kind) => (kind === 'uncertainOutcomes' ? undefined : READY[kind])));
	const uncertain = anyOf(request.recover.map((kind) => UNCERTAIN[kind]));
	const entry = historyEntry({ state: NEW.state, version: NEW.version, attempt: NEW.attempt, workflow: '$7', execution: 'NULL', by: '$9', reason: REASON, reference: 'NULL' });
	const rows = await table.send({
		writes: true,
		text: `
			WITH mine AS MATERIALIZED (
				SELECT ${KEY_COLUMNS} FROM ${table.name} AS claim
				 WHERE claim.owner_execution_id = $2 AND claim.state IN ('processing', 'outcome_uncertain')),
			due AS MATERIALIZED (
				SELECT ${KEY_COLUMNS}, claim.state AS seen_state,
				       CASE WHEN ${ready} THEN CASE WHEN claim.attempt >= claim.max_attempts THEN 'spent' ELSE 'ready' END
				            WHEN ${RECONCILIATIONS} >= claim.max_attempts THEN 'spent' ELSE 'reconcile' END AS course
				  FROM ${table.name} AS claim
				 WHERE claim.source = $3 AND claim.action = $4 AND claim.environment = $5 AND claim.state <> 'completed'
				   AND ((${ready} AND (claim.payload_complete OR claim.attempt >= claim.max_attempts)) OR ${uncertain})
				 ORDER BY claim.first_seen_at
				 LIMIT CASE WHEN EXISTS (SELECT FROM mine) THEN 0 ELSE $6::integer END
				   FOR UPDATE OF claim SKIP LOCKED),
			numbered AS (SELECT due.*, $2 || ':' || row_number() OVER () AS new_token FROM due),
			taken AS (
				UPDATE ${table.name} AS claim
				   SET state = ${NEW.state}, version = ${NEW.version}, attempt = ${NEW.attempt},
				       owner_token = CASE WHEN item.course = 'spent' THEN claim.owner_token ELSE item.new_token END,
				       owner_instance_id = CASE WHEN item.course = 'spent' THEN claim.owner_instance_id ELSE $8 END,
				       owner_workflow_id = CASE WHEN item.course = 'spent' THEN claim.owner_workflow_id ELSE $7 END,
				       owner_execution_id = CASE WHEN item.course = 'spent' THEN claim.owner_execution_id ELSE $2 END,
				       owner_node_id = CASE WHEN item.course = 'spent' THEN claim.owner_node_id ELSE $10 END,
				       owner_node_name = CASE WHEN item.course = 'spent' THEN claim.owner_node_name ELSE $9 END,
				       resolved_by = CASE WHEN item.course = 'spent' THEN claim.resolved_by END,
				       claim_reason = CASE WHEN item.course = 'ready' THEN ${REASON} ELSE claim.claim_reason END,
				       lease_expires_at = CASE WHEN item.course <> 'spent' THEN clock_timestamp() + make_interval(secs => $11::integer) END,
				       retry_at = NULL, updated_at = clock_timestamp(),
				       outcome_reference = CASE WHEN item.course <> 'ready' THEN claim.outcome_reference END,
				       outcome_result = CASE WHEN item.course <> 'ready' THEN claim.outcome_result END,
				       outcome_reason = CASE item.course WHEN 'ready' THEN NULL
				           ELSE coalesce(claim.outcome_reason, 'The lease ended before an outcome was recorded') END,
				       outcome_recorded_at = CASE WHEN item.course <> 'ready' THEN coalesce(claim.outcome_recorded_at, clock_timestamp()) END,
				       history = claim.history || ${entry}
				  FROM ${BOUNDED_WAIT}, numbered AS item
				 WHERE ${SAME_CLAIM}
				RETURNING item.course, claim.first_seen_at, claim.payload, ${RECORD_COLUMN})
			SELECT * FROM taken WHERE course <> 'spent'
			UNION ALL
			SELECT CASE claim.state WHEN 'processing' THEN 'ready' ELSE 'reconcile' END, claim.first_seen_at, claim.payload, ${RECORD_COLUMN}
			  FROM mine AS item JOIN ${table.name} AS claim ON ${SAME_CLAIM}
			 ORDER BY first_seen_at`,
		values: [request.pollId, request.source, request.action, request.environment, request.limit, owner.workflowId, owner.instanceId, owner.nodeName, owner.nodeId, request.leaseSeconds],
	});
	return rows.map((row) => ({
		course: row.course as RecoveredClaim['course'],
		record: recordFrom(row),
		payload: row.payload === null ? null : (JSON.parse(row.payload) as unknown),
	}));
}

const NEW = {
	state: `CASE item.course WHEN 'ready' THEN 'processing' WHEN 'reconcile' THEN 'outcome_uncertain' ELSE 'needs_review' END`,
	version: `(claim.version + CASE WHEN item.course = 'spent' THEN 0 ELSE 1 END)`,
	attempt: `(claim.attempt + CASE WHEN item.course = 'ready' THEN 1 ELSE 0 END)`,
};

const REASON = `CASE item.course WHEN 'reconcile' THEN 'reconciliation' WHEN 'spent' THEN 'attempts_used_up'
	ELSE CASE item.seen_state WHEN 'received' THEN 'received' WHEN 'retryable_failure' THEN 'retry' ELSE 'lease_expired' END END`;

function anyOf(conditions: ReadonlyArray<string | undefined>): string {
	const given = conditions.filter((condition) => condition !== undefined);
	return given.length === 0 ? 'false' : `(${given.join(' OR ')})`;
}
