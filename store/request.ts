import type { Identity } from './identity';
import type { StoredPayload } from './payload';
import type { LeasePolicy, Operation, Owner, State } from './record';

/** One delivery that asks to be claimed. */
export interface ClaimRequest {
	readonly identity: Identity;
	/** See `makeOwnerToken`. */
	readonly ownerToken: string;
	readonly eventType: string | null;
	/** See `fingerprintOf`; null when fingerprints are not compared. */
	readonly fingerprint: string | null;
	/** What a delivery with another fingerprint than the record's is. */
	readonly payloadMismatch: 'knownDuplicate' | 'operationalError';
	readonly payload: StoredPayload;
	/** Seconds, a whole number. */
	readonly leaseSeconds: number;
	readonly whenLeaseExpires: LeasePolicy;
	readonly maxAttempts: number;
	/** Days that the claim is remembered after it is finished. */
	readonly retentionDays: number;
	/** Only looked at in environment `test`: whether a record of an earlier run, or a live one, counts. */
	readonly takenAnewEachRun: boolean;
}

/** A request, and who makes it for what. */
export interface ClaimCall {
	readonly operation: Operation;
	readonly owner: Owner;
	readonly request: ClaimRequest;
}

/** State and attempt in which a new ownership begins. */
export function opening(operation: Operation): { state: State; attempt: 0 | 1 } {
	if (operation === 'receive') return { state: 'received', attempt: 0 };
	return { state: operation === 'deduplicate' ? 'completed' : 'processing', attempt: 1 };
}

/** An identity as the key columns of a statement's JSON parameter. */
export function keyOf(identity: Identity) {
	const { deliveryId, source, account, action, environment } = identity;
	return { delivery_id: deliveryId, source, account, action, environment };
}

/** Who does something, as columns of a statement's JSON parameter: see `OWNER_RECORD`. */
export function ownerOf({ instanceId, workflowId, executionId, nodeId, nodeName }: Owner) {
	return { instance_id: instanceId, workflow_id: workflowId, execution_id: executionId, node_id: nodeId, node_name: nodeName };
}

/**
 * What a new ownership writes, as columns of a statement's JSON parameter: see `KEY_RECORD` and `OWNERSHIP_RECORD`.
 * Written out: an object as wide as this that is spread together from parts takes longer than its statement.
 */
export function ownershipOf({ operation, owner, request }: ClaimCall) {
	const { identity, payload } = request;
	const { state, attempt } = opening(operation);
	return {
		delivery_id: identity.deliveryId,
		source: identity.source,
		account: identity.account,
		action: identity.action,
		environment: identity.environment,
		state,
		attempt,
		operation,
		instance_id: owner.instanceId,
		workflow_id: owner.workflowId,
		execution_id: owner.executionId,
		node_id: owner.nodeId,
		node_name: owner.nodeName,
		owner_token: request.ownerToken,
		event_type: request.eventType,
		fingerprint: request.fingerprint,
		payload: payload.json,
		payload_complete: payload.complete,
		lease_seconds: request.leaseSeconds,
		when_lease_expires: request.whenLeaseExpires,
		max_attempts: request.maxAttempts,
		retention_days: request.retentionDays,
	};
}
