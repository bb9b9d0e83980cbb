import { randomUUID } from 'node:crypto';
import { readSettings, type ClaimStoreCredential, type ConnectionSettings } from '../../../store/connection/settings';
import type { ClaimAnswer } from '../../../store/claim';
import type { Ownership } from '../../../store/handle';
import type { Identity } from '../../../store/identity';
import { NO_PAYLOAD } from '../../../store/payload';
import type { ClaimRecord, Owner } from '../../../store/record';
import type { ClaimRequest } from '../../../store/request';
import type { OutcomeRequest } from '../../../store/statements/recordOutcomes';
import type { ServerAddress, TestDatabase } from '../../support/database';

/** The settings that a credential for this database makes. */
export function settingsFor(database: ServerAddress & { database: string }, changes: ClaimStoreCredential = {}): ConnectionSettings {
	const { host, port, user, password } = database;
	return readSettings({ host, port, user, password, database: database.database, ...changes });
}

export function anIdentity(changes: Partial<Identity> = {}): Identity {
	return { deliveryId: randomUUID(), source: 'shop', account: 'acme', action: 'create-lead', environment: 'live', ...changes };
}

/** A node in an execution of its own, unless told otherwise. */
export function anOwner(changes: Partial<Owner> = {}): Owner {
	return { instanceId: 'instance', workflowId: 'workflow', executionId: randomUUID(), nodeId: 'node', nodeName: 'Idempotent Claim', ...changes };
}

/** A delivery that was never seen, with a token that was never used, unless told otherwise. */
export function aRequest(changes: Partial<ClaimRequest> = {}): ClaimRequest {
	return {
		identity: anIdentity(),
		ownerToken: randomUUID(),
		eventType: null,
		fingerprint: null,
		payloadMismatch: 'knownDuplicate',
		payload: NO_PAYLOAD,
		leaseSeconds: 300,
		whenLeaseExpires: 'outcomeUncertain',
		maxAttempts: 5,
		retentionDays: 30,
		takenAnewEachRun: false,
		...changes,
	};
}

/** The same delivery, come again: same identity, another run's token. */
export function aCopyOf(request: ClaimRequest, changes: Partial<ClaimRequest> = {}): ClaimRequest {
	return { ...request, ownerToken: randomUUID(), ...changes };
}

export function anOutcome(claim: Ownership, changes: Partial<OutcomeRequest> = {}): OutcomeRequest {
	return { claim, reference: null, reason: null, result: null, keepPayload: false, retryAfterSeconds: 60, leaseSeconds: 300, ...changes };
}

/** The ownership that a new claim gave; anything else fails the test. */
export function ownershipOf(answer: ClaimAnswer | undefined): Ownership {
	if (answer?.verdict !== 'new') throw new Error(`Not a new claim: ${JSON.stringify(answer)}`);
	const { identity, ownerToken, version }: ClaimRecord = answer.record;
	return { identity, ownerToken, version };
}

/** What an answer says, in one short text: `new first_delivery`, `duplicate completed`, `error store_busy`. */
export function inShort(answer: ClaimAnswer): string {
	return answer.verdict === 'error' ? `error ${answer.error.kind}` : `${answer.verdict} ${answer.reason}`;
}

/** A row of the claim table as the driver gives it, past the code under test. */
export interface RawClaim {
	delivery_id: string;
	environment: string;
	state: string;
	version: number;
	attempt: number;
	max_attempts: number;
	claim_reason: string;
	operation: string;
	owner_token: string;
	owner_execution_id: string;
	owner_node_id: string;
	owner_node_name: string;
	resolved_by: string | null;
	lease_seconds: number;
	when_lease_expires: string;
	retention_days: number;
	lease_expires_at: Date | null;
	retry_at: Date | null;
	first_seen_at: Date;
	updated_at: Date;
	purge_after: Date | null;
	fingerprint: string | null;
	payload: unknown;
	payload_complete: boolean;
	outcome_reference: string | null;
	outcome_result: unknown;
	outcome_reason: string | null;
	outcome_recorded_at: Date | null;
	history: Array<Record<string, string | number | null>>;
}

const KEY = 'delivery_id = $1 AND source = $2 AND account = $3 AND action = $4 AND environment = $5';
const keyOf = ({ deliveryId, source, account, action, environment }: Identity) => [deliveryId, source, account, action, environment];

/** The row of one identity in the default table; it must exist. */
export async function rowOf(database: TestDatabase, identity: Identity): Promise<RawClaim> {
	const [row] = await database.query<RawClaim>(`SELECT * FROM idempotent_claims WHERE ${KEY}`, keyOf(identity));
	if (row === undefined) throw new Error(`No row for ${JSON.stringify(identity)}`);
	return row;
}

/** Changes the row of one identity, for instance its instants: tests move time, they never wait for it. */
export async function changeRow(database: TestDatabase, identity: Identity, assignments: string): Promise<void> {
	await database.query(`UPDATE idempotent_claims SET ${assignments} WHERE ${KEY}`, keyOf(identity));
}
