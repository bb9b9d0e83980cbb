import type { Row } from './connection/connection';
import type { Environment, Identity } from './identity';
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

/** The columns that make a ClaimRecord, for a SELECT or RETURNING list on the table alias `claim`. */
export const RECORD_COLUMNS = `
	claim.delivery_id, claim.source, claim.account, claim.action, claim.environment,
	claim.state, claim.version, claim.attempt, claim.max_attempts, claim.claim_reason, claim.operation,
	claim.owner_token, claim.owner_instance_id, claim.owner_workflow_id, claim.owner_execution_id,
	claim.owner_node_id, claim.owner_node_name, claim.resolved_by,
	${isoInstant('claim.lease_expires_at')} AS lease_expires_at,
	coalesce(claim.lease_expires_at <= clock_timestamp(), false) AS lease_over,
	claim.when_lease_expires,
	${isoInstant('claim.retry_at')} AS retry_at,
	coalesce(claim.retry_at <= clock_timestamp(), false) AS retry_due,
	${isoInstant('claim.first_seen_at')} AS first_seen_at,
	claim.event_type, claim.fingerprint, claim.payload_complete,
	claim.outcome_reference, claim.outcome_result, claim.outcome_reason,
	${isoInstant('claim.outcome_recorded_at')} AS outcome_recorded_at`;

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

export function recordFrom(row: Row): ClaimRecord {
	const text = (column: string) => row[column] ?? '';
	const recordedAt = row.outcome_recorded_at;
	return {
		identity: identityFrom(row),
		state: text('state') as State,
		version: Number(row.version),
		attempt: Number(row.attempt),
		maxAttempts: Number(row.max_attempts),
		claimReason: text('claim_reason') as ClaimReason,
		operation: text('operation') as Operation,
		ownerToken: text('owner_token'),
		owner: {
			instanceId: text('owner_instance_id'),
			workflowId: text('owner_workflow_id'),
			executionId: text('owner_execution_id'),
			nodeId: text('owner_node_id'),
			nodeName: text('owner_node_name'),
		},
		resolvedBy: row.resolved_by,
		leaseExpiresAt: row.lease_expires_at,
		leaseOver: row.lease_over === 't',
		whenLeaseExpires: text('when_lease_expires') as LeasePolicy,
		retryAt: row.retry_at,
		retryDue: row.retry_due === 't',
		firstSeenAt: text('first_seen_at'),
		eventType: row.event_type,
		fingerprint: row.fingerprint,
		payloadComplete: row.payload_complete === 't',
		outcome:
			recordedAt === null
				? null
				: {
						reference: row.outcome_reference,
						result: row.outcome_result === null ? null : (JSON.parse(row.outcome_result) as unknown),
						reason: row.outcome_reason,
						recordedAt,
					},
	};
}
