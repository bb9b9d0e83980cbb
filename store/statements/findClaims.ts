import type { Row } from '../connection/connection';
import type { Identity } from '../identity';
import { recordFrom, RECORD_COLUMN, type ClaimRecord, type State } from '../record';
import { keyOf } from '../request';
import { isoInstant, itemsOf, KEY_RECORD, SAME_CLAIM } from '../sql';
import type { ClaimTable } from '../table/claimTable';

/** One transition of a claim, as its history keeps it. */
export interface HistoryEntry {
	readonly at: string;
	readonly state: State;
	readonly version: number;
	readonly attempt: number;
	readonly workflow: string | null;
	readonly execution: string | null;
	readonly by: string | null;
	readonly reason: string | null;
	readonly reference: string | null;
}

/** A record with everything that is stored of it. */
export interface ClaimDetails {
	readonly record: ClaimRecord;
	readonly payload: unknown;
	/** Oldest first. */
	readonly history: readonly HistoryEntry[];
	readonly updatedAt: string;
	/** From when on it may be forgotten; null while it may not. */
	readonly purgeAfter: string | null;
	readonly leaseSeconds: number;
	readonly retentionDays: number;
}

/** What is looked for; every part that is given must hold. */
export interface ClaimFilter {
	readonly deliveryId?: string;
	readonly source?: string;
	readonly account?: string;
	readonly action?: string;
	readonly environment?: Identity['environment'];
	readonly states?: readonly State[];
	readonly executionId?: string;
	/** Seconds since the delivery was first seen. */
	readonly olderThanSeconds?: number;
	/** Whether a lease has ended and nobody has looked at it. */
	readonly leaseExpired?: boolean;
}

/**
 * Records that a filter finds, oldest first. Payloads can be left out: many of them may be more than memory holds.
 *
 * @throws ClaimError
 */
export async function findClaims(table: ClaimTable, filter: ClaimFilter, limit: number, withPayload = true): Promise<ClaimDetails[]> {
	const conditions: string[] = [];
	const values: unknown[] = [limit];
	const demand = (condition: (parameter: string) => string, value: unknown) => {
		if (value === undefined) return;
		values.push(value);
		conditions.push(condition(`$${values.length}`));
	};
	demand((value) => `claim.delivery_id = ${value}`, filter.deliveryId);
	demand((value) => `claim.source = ${value}`, filter.source);
	demand((value) => `claim.account = ${value}`, filter.account);
	demand((value) => `claim.action = ${value}`, filter.action);
	demand((value) => `claim.environment = ${value}`, filter.environment);
	demand((value) => `claim.owner_execution_id = ${value}`, filter.executionId);
	demand((value) => `claim.state IN (SELECT json_array_elements_text(${value}::json))`, filter.states && JSON.stringify(filter.states));
	demand((value) => `claim.first_seen_at <= clock_timestamp() - make_interval(secs => ${value}::double precision)`, filter.olderThanSeconds);
	if (filter.leaseExpired === true) conditions.push(`claim.state <> 'completed' AND claim.lease_expires_at <= clock_timestamp()`);
	// Said a second time, because only in these words the small index over unfinished claims can be used.
	if (filter.states && !filter.states.includes('completed')) conditions.push(`claim.state <> 'completed'`);
	const rows = await table.send({
		writes: false,
		text: `
			SELECT ${withPayload ? DETAIL_COLUMNS : DETAILS_WITHOUT_PAYLOAD}
			  FROM ${table.name} AS claim
			 WHERE ${conditions.join(' AND ') || 'true'}
			 ORDER BY claim.first_seen_at
			 LIMIT $1::integer`,
		values,
	});
	return rows.map(detailsFrom);
}

/** One record with all that is stored of it. @throws ClaimError */
export async function findClaimDetails(table: ClaimTable, identity: Identity): Promise<ClaimDetails | undefined> {
	const [row] = await table.send({
		writes: false,
		text: `SELECT ${DETAIL_COLUMNS} FROM ${itemsOf('$1', KEY_RECORD, false)} JOIN ${table.name} AS claim ON ${SAME_CLAIM}`,
		values: [JSON.stringify([keyOf(identity)])],
	});
	return row && detailsFrom(row);
}

const detailColumns = (payload: string) => `${RECORD_COLUMN}, ${payload}, claim.history, claim.lease_seconds, claim.retention_days,
	${isoInstant('claim.updated_at')} AS updated_at, ${isoInstant('claim.purge_after')} AS purge_after`;

/** The columns that make a ClaimDetails, on the table alias `claim`. */
export const DETAIL_COLUMNS = detailColumns('claim.payload');
const DETAILS_WITHOUT_PAYLOAD = detailColumns('NULL AS payload');

export function detailsFrom(row: Row): ClaimDetails {
	return {
		record: recordFrom(row),
		payload: row.payload === null ? null : (JSON.parse(row.payload) as unknown),
		history: JSON.parse(row.history ?? '[]') as HistoryEntry[],
		updatedAt: row.updated_at ?? '',
		purgeAfter: row.purge_after,
		leaseSeconds: Number(row.lease_seconds),
		retentionDays: Number(row.retention_days),
	};
}
