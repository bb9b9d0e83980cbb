import type { Row } from './connection/connection';
import { identityText, type Environment, type Identity } from './identity';
import { isoInstant } from './sql';

/** The life of a claim. Source: the mission's table of states. */
export const STATES = ['received', 'processing', 'completed', 'retryable_failure', 'outcome_uncertain', 'needs_review'] as const;
export type State = (typeof STATES)[number];

export function isState(value: unknown): value is State {
	return STATES.includes(value as State);
}

/** What is done with a delivery: claim it, store it for later work, or only remember that it came. */
export type Operation = 'claim' | 'receive' | 'deduplicate';

export type LeasePolicy = 'outcomeUncertain' | 'takeOver';

/** Who works, or worked last, on a claim. */
export interface Owner {
	readonly instanceId: string;
	readonly workflowId: string;
	readonly executionId: string;
	readonly nodeId: string;
	readonly nodeName: string;
}

/** A row of the claim table. Instants are ISO 8601 with Z, from the database's clock. */
export interface ClaimRecord {
	readonly identity: Identity;
	readonly state: State;
	readonly version: number;
	readonly attempt: number;
	readonly maxAttempts: number;
	readonly claimReason: ClaimReason;
	readonly operation: Operation;
	readonly ownerToken: string;
	readonly owner: Owner;
	readonly resolvedBy: string | null;
	readonly leaseExpiresAt: string | null;
	/** Whether the lease had ended when the row was read, by the database's clock; false without a lease. */
	readonly leaseOver: boolean;
	readonly whenLeaseExpires: LeasePolicy;
	readonly retryAt: string | null;
	/** Whether `retryAt` had come when the row was read, by the database's clock. */
	readonly retryDue: boolean;
	readonly firstSeenAt: string;
	readonly eventType: string | null;
	readonly fingerprint: string | null;
	readonly payloadComplete: boolean;
	readonly outcome: Outcome | null;
}

/** Why an owner got the claim. */
export type ClaimReason = 'first_delivery' | 'received' | 'retry' | 'lease_expired';

export interface Outcome {
	readonly reference: string | null;
	readonly result: unknown;
	readonly reason: string | null;
	readonly recordedAt: string;
}

/**
 * The column that makes a ClaimRecord, for a SELECT or RETURNING list on the table alias `claim`. One of JSON, in the
 * record's own words: the driver spends more on thirty columns than all else about a statement costs it.
 */
export const RECORD_COLUMN = `json_build_object(
	'identity', json_build_object(
		'deliveryId', claim.delivery_id, 'source', claim.source, 'account', claim.account,
		'action', claim.action, 'environment', claim.environment),
	'state', claim.state, 'version', claim.version, 'attempt', claim.attempt, 'maxAttempts', claim.max_attempts,
	'claimReason', claim.claim_reason, 'operation', claim.operation,
	'ownerToken', claim.owner_token,
	'owner', json_build_object(
		'instanceId', claim.owner_instance_id, 'workflowId', claim.owner_workflow_id, 'executionId', claim.owner_execution_id,
		'nodeId', claim.owner_node_id, 'nodeName', claim.owner_node_name),
	'resolvedBy', claim.resolved_by,
	'leaseExpiresAt', ${isoInstant('claim.lease_expires_at')},
	'leaseOver', coalesce(claim.lease_expires_at <= clock_timestamp(), false),
	'whenLeaseExpires', claim.when_lease_expires,
	'retryAt', ${isoInstant('claim.retry_at')},
	'retryDue', coalesce(claim.retry_at <= clock_timestamp(), false),
	'firstSeenAt', ${isoInstant('claim.first_seen_at')},
	'eventType', claim.event_type, 'fingerprint', claim.fingerprint, 'payloadComplete', claim.payload_complete,
	'outcome', CASE WHEN claim.outcome_recorded_at IS NOT NULL THEN json_build_object(
		'reference', claim.outcome_reference, 'result', claim.outcome_result, 'reason', claim.outcome_reason,
		'recordedAt', ${isoInstant('claim.outcome_recorded_at')}) END) AS record`;

/** @param row has the column `RECORD_COLUMN` */
export function recordFrom(row: Row): ClaimRecord {
	return JSON.parse(row.record ?? '') as ClaimRecord;
}

/** By `identityText`. @param rows have the column `RECORD_COLUMN` */
export function recordsOf(rows: readonly Row[]): Map<string, ClaimRecord> {
	return new Map(rows.map(recordFrom).map((record) => [identityText(record.identity), record]));
}

/** The identity in a row that has the key's columns. */
export function identityFrom(row: Row): Identity {
	const text = (column: string) => row[column] ?? '';
	return {
		deliveryId: text('delivery_id'),
		source: text('source'),
		account: text('account'),
		action: text('action'),
		environment: text('environment') as Environment,
	};
}
