import type { Doubt } from '../connection/connection';
import { identityText } from '../identity';
import { recordFrom, RECORD_COLUMNS, type ClaimRecord, type Operation, type Owner } from '../record';
import { BOUNDED_WAIT, historyEntry, itemsOf, KEY_COLUMNS, KEY_RECORD, purgeAfter } from '../sql';
import type { ClaimTable } from '../table/claimTable';
import { keyOf, opening, settingsOf, type ClaimRequest } from '../request';

/**
 * The winning path: one small INSERT in autocommit decides who owns each delivery. A conflict takes no
 * transaction ID and writes no WAL. The requests must name each identity once, in one order for all processes.
 *
 * @returns the records of those that are new, by `identityText`; what is missing says nothing: it must be read
 * @throws ClaimError
 */
export async function insertClaims(table: ClaimTable, operation: Operation, owner: Owner, requests: readonly ClaimRequest[], doubt: Doubt): Promise<Map<string, ClaimRecord>> {
	if (requests.length === 0) return new Map();
	const { state, attempt } = opening(operation);
	const rows = await table.send({
		writes: true,
		separable: requests.length > 1,
		prepare: requests.length === 1,
		doubt,
		text: `
			INSERT INTO ${table.name} AS claim (
				${KEY_COLUMNS},
				state, version, attempt, claim_reason, operation, lease_expires_at, first_seen_at, updated_at, purge_after,
				owner_token, owner_instance_id, owner_workflow_id, owner_execution_id, owner_node_id, owner_node_name,
				lease_seconds, when_lease_expires, max_attempts, retention_days,
				event_type, fingerprint, payload, payload_complete, outcome_recorded_at, history)
			SELECT
				${KEY_COLUMNS},
				$3, 1, $4::integer, 'first_delivery', $5,
				CASE WHEN $3 = 'processing' THEN clock_timestamp() + make_interval(secs => item.lease_seconds) END,
				clock_timestamp(), clock_timestamp(), ${purgeAfter('$3', 'item.environment', 'item.retention_days')},
				item.owner_token, $6, $7, $8, $9, $10,
				item.lease_seconds, item.when_lease_expires, item.max_attempts, item.retention_days,
				item.event_type, item.fingerprint, item.payload::json, item.payload_complete,
				CASE WHEN $3 = 'completed' THEN clock_timestamp() END,
				jsonb_build_array(${historyEntry({ state: '$3', version: '1', attempt: '$4::integer', workflow: '$7', execution: '$8', by: '$10', reason: `'first_delivery'`, reference: 'NULL' })})
			FROM ${BOUNDED_WAIT}, ${itemsOf(
				'$2',
				`${KEY_RECORD}, owner_token text, event_type text, fingerprint text, payload text, payload_complete boolean,
				lease_seconds integer, when_lease_expires text, max_attempts integer, retention_days integer`,
				requests.length,
			)}
			ON CONFLICT (${KEY_COLUMNS}) DO NOTHING
			RETURNING ${RECORD_COLUMNS}`,
		values: [
			JSON.stringify(
				requests.map((request) => ({
					...keyOf(request.identity),
					owner_token: request.ownerToken,
					event_type: request.eventType,
					fingerprint: request.fingerprint,
					payload: request.payload.json,
					payload_complete: request.payload.complete,
					...settingsOf(request),
				})),
			),
			state,
			attempt,
			operation,
			owner.instanceId,
			owner.workflowId,
			owner.executionId,
			owner.nodeId,
			owner.nodeName,
		],
	});
	return new Map(rows.map(recordFrom).map((record) => [identityText(record.identity), record]));
}
