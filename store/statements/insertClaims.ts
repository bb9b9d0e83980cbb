import type { Doubt } from '../connection/connection';
import { recordsOf, RECORD_COLUMN, type ClaimRecord } from '../record';
import { BOUNDED_WAIT, builtOnce, historyEntry, itemsOf, KEY_COLUMNS, KEY_RECORD, OWNERSHIP_RECORD, purgeAfter } from '../sql';
import type { ClaimTable } from '../table/claimTable';
import { ownershipOf, type ClaimCall } from '../request';

/**
 * The winning path: one small INSERT in autocommit decides who owns each delivery. A conflict takes no
 * transaction ID and writes no WAL. The calls must name each identity once, in one order for all processes.
 *
 * @returns the records of those that are new, by `identityText`; what is missing says nothing: it must be read
 * @throws ClaimError
 */
export async function insertClaims(table: ClaimTable, calls: readonly ClaimCall[], doubt: Doubt): Promise<Map<string, ClaimRecord>> {
	if (calls.length === 0) return new Map();
	const several = calls.length > 1;
	const rows = await table.send({
		writes: true,
		separable: several,
		prepare: !several,
		doubt,
		text: insertText(table.name, several),
		values: [JSON.stringify(calls.map(ownershipOf))],
	});
	return recordsOf(rows);
}

const insertText = builtOnce(
	(table: string, several: boolean) => `
		INSERT INTO ${table} AS claim (
			${KEY_COLUMNS},
			state, version, attempt, claim_reason, operation, lease_expires_at, first_seen_at, updated_at, purge_after,
			owner_token, owner_instance_id, owner_workflow_id, owner_execution_id, owner_node_id, owner_node_name,
			lease_seconds, when_lease_expires, max_attempts, retention_days,
			event_type, fingerprint, payload, payload_complete, outcome_recorded_at, history)
		SELECT
			${KEY_COLUMNS},
			item.state, 1, item.attempt, 'first_delivery', item.operation,
			CASE WHEN item.state = 'processing' THEN clock_timestamp() + make_interval(secs => item.lease_seconds) END,
			clock_timestamp(), clock_timestamp(), ${purgeAfter('item.state', 'item.environment', 'item.retention_days')},
			item.owner_token, item.instance_id, item.workflow_id, item.execution_id, item.node_id, item.node_name,
			item.lease_seconds, item.when_lease_expires, item.max_attempts, item.retention_days,
			item.event_type, item.fingerprint, item.payload::json, item.payload_complete,
			CASE WHEN item.state = 'completed' THEN clock_timestamp() END,
			jsonb_build_array(${historyEntry({ state: 'item.state', version: '1', attempt: 'item.attempt', workflow: 'item.workflow_id', execution: 'item.execution_id', by: 'item.node_name', reason: `'first_delivery'`, reference: 'NULL' })})
		FROM ${BOUNDED_WAIT}, ${itemsOf('$2', `${KEY_RECORD}, ${OWNERSHIP_RECORD}`, several)}
		ON CONFLICT (${KEY_COLUMNS}) DO NOTHING
		RETURNING ${RECORD_COLUMN}`,
);
