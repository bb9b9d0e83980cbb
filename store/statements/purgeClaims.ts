import type { Row } from '../connection/connection';
import type { ClaimTable } from '../table/claimTable';
import { deleteRefused } from './deleteRight';

/** What may be forgotten. */
export interface PurgeRequest {
	/** `pastRetention`: finished claims and test claims whose retention is over. `allTests`: every test claim, whatever its state. */
	readonly what: 'pastRetention' | 'allTests';
	/** Claims at the most. */
	readonly limit: number;
}

/** How many were, or would be, forgotten. */
export interface PurgeCount {
	readonly live: number;
	readonly test: number;
}

/** Rows per statement, so that no statement holds many locks for long. */
const BATCH = 1000;

/** What no purge may touch is said here alone, and asked again by the DELETE itself: unfinished live claims, and finished ones within their retention. */
const PURGEABLE: Readonly<Record<PurgeRequest['what'], string>> = {
	pastRetention: `(claim.purge_after <= clock_timestamp() AND (claim.state = 'completed' OR claim.environment = 'test'))`,
	allTests: `(claim.environment = 'test')`,
};

/**
 * Forgets claims, in statements of a bounded size. Needs DELETE on the table.
 *
 * @throws ClaimError; what earlier batches removed stays removed
 */
export async function purgeClaims(table: ClaimTable, { what, limit }: PurgeRequest): Promise<PurgeCount> {
	const purgeable = PURGEABLE[what];
	let count: PurgeCount = { live: 0, test: 0 };
	for (let left = limit; left > 0; ) {
		const size = Math.min(BATCH, left);
		const rows = await removeBatch(table, purgeable, size);
		const test = rows.filter(({ environment }) => environment === 'test').length;
		count = { live: count.live + rows.length - test, test: count.test + test };
		if (rows.length < size) break;
		left -= rows.length;
	}
	return count;
}

async function removeBatch(table: ClaimTable, purgeable: string, size: number): Promise<Row[]> {
	try {
		return await table.send({
			writes: false,
			text: `
				WITH gone AS MATERIALIZED (
					SELECT claim.ctid AS place FROM ${table.name} AS claim WHERE ${purgeable} LIMIT $1::integer FOR UPDATE SKIP LOCKED)
				DELETE FROM ${table.name} AS claim USING gone WHERE claim.ctid = gone.place AND ${purgeable}
				RETURNING claim.environment`,
			values: [size],
		});
	} catch (failure) {
		throw await deleteRefused(table, failure);
	}
}

/**
 * Counts what `purgeClaims` would forget, and changes nothing.
 *
 * @throws ClaimError
 */
export async function countPurgeable(table: ClaimTable, { what, limit }: PurgeRequest): Promise<PurgeCount> {
	const [row] = await table.send({
		writes: false,
		text: `
			SELECT count(*) FILTER (WHERE environment = 'live') AS live, count(*) FILTER (WHERE environment = 'test') AS test
			  FROM (SELECT claim.environment FROM ${table.name} AS claim WHERE ${PURGEABLE[what]} LIMIT $1::integer) AS claim`,
		values: [limit],
	});
	return { live: Number(row.live), test: Number(row.test) };
}
