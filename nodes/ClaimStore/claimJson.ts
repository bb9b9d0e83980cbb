import type { IDataObject } from 'n8n-workflow';
import { handleOfSeen } from '../../store/handle';
import { idempotencyKey, type Identity } from '../../store/identity';
import type { ClaimDetails } from '../../store/statements/findClaims';

/** A record as an item: every key always there, null where it does not apply. The owner token stays inside the handle. */
export function claimJson({ record, payload, history, ...details }: ClaimDetails, withPayload: boolean): IDataObject {
	const { identity, owner, outcome } = record;
	return {
		...NO_CLAIM,
		...identityJson(identity),
		state: record.state,
		version: record.version,
		attempt: record.attempt,
		maxAttempts: record.maxAttempts,
		claimReason: record.claimReason,
		operation: record.operation,
		eventType: record.eventType,
		leaseExpiresAt: record.leaseExpiresAt,
		leaseExpired: record.state !== 'completed' && record.leaseOver,
		leaseSeconds: details.leaseSeconds,
		whenLeaseExpires: record.whenLeaseExpires,
		retryAt: record.retryAt,
		firstSeenAt: record.firstSeenAt,
		updatedAt: details.updatedAt,
		purgeAfter: details.purgeAfter,
		retentionDays: details.retentionDays,
		ownerInstanceId: owner.instanceId,
		ownerWorkflowId: owner.workflowId,
		ownerExecutionId: owner.executionId,
		ownerNodeId: owner.nodeId,
		ownerNodeName: owner.nodeName,
		resolvedBy: record.resolvedBy,
		outcomeReference: outcome?.reference ?? null,
		outcomeResult: outcome?.result ?? null,
		outcomeReason: outcome?.reason ?? null,
		outcomeRecordedAt: outcome?.recordedAt ?? null,
		fingerprint: record.fingerprint,
		handle: handleOfSeen({ identity, ownerToken: record.ownerToken, version: record.version, state: record.state }),
		payloadComplete: record.payloadComplete,
		payload: withPayload ? (payload as IDataObject) : null,
		history,
	};
}

/** The same where there is no record: only what it would be called. */
export function missingClaimJson(identity: Identity): IDataObject {
	return { ...NO_CLAIM, ...identityJson(identity) };
}

function identityJson(identity: Identity): IDataObject {
	const { deliveryId, source, account, action, environment } = identity;
	return { deliveryId, source, account, action, environment, idempotencyKey: idempotencyKey(identity) };
}

/** All keys, in the order of the table view: what a person looks for first comes first. */
const NO_CLAIM: IDataObject = Object.fromEntries(
	[
		...['deliveryId', 'source', 'account', 'action', 'environment', 'state', 'version', 'attempt', 'maxAttempts', 'claimReason', 'operation', 'eventType'],
		...['leaseExpiresAt', 'leaseExpired', 'leaseSeconds', 'whenLeaseExpires', 'retryAt', 'firstSeenAt', 'updatedAt', 'purgeAfter', 'retentionDays'],
		...['ownerInstanceId', 'ownerWorkflowId', 'ownerExecutionId', 'ownerNodeId', 'ownerNodeName', 'resolvedBy'],
		...['outcomeReference', 'outcomeResult', 'outcomeReason', 'outcomeRecordedAt'],
		...['idempotencyKey', 'fingerprint', 'handle', 'payloadComplete', 'payload', 'history'],
	].map((key) => [key, null]),
);
