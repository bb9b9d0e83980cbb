import type { Doubt } from '../connection/connection';
import { identityText, type Identity } from '../identity';
import { identityFrom } from '../record';
import { keyOf } from '../request';
import { BOUNDED_WAIT, itemsOf, KEY_COLUMNS, KEY_RECORD, SAME_CLAIM } from '../sql';
import type { ClaimTable } from '../table/claimTable';
import { deleteRefused } from './deleteRight';
import { readClaims } from './readClaims';

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

/**
 * What no purge may touch is said here alone, and asked again by the DELETE itself: unfinished live claims, and finished ones within their
 * retention. As of the statement's beginning: with a clock that moves meanwhile the index on purge_after could not be used.
 */
const PURGEABLE: Readonly<Record<PurgeRequest['what'], string>> = {
	pastRetention: `(claim.purge_after <= statement_timestamp() AND (claim.state = 'completed' OR claim.environment = 'test'))`,
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
		const chosen = await choose(table, purgeable, size);
		const removed = await remove(table, purgeable, chosen);
		const test = removed.filter(({ environment }) => environment === 'test').length;
		count = { live: count.live + removed.length - test, test: count.test + test };
		left -= removed.length;
		// Nothing of a batch could be had: others hold it, and the next purge will find it.
		if (chosen.length < size || removed.length === 0) break;
	}
	return count;
}

async function choose(table: ClaimTable, purgeable: string, size: number): Promise<Identity[]> {
	const rows = await table.send({
		writes: false,
		text: `SELECT ${KEY_COLUMNS} FROM ${table.name} AS claim WHERE ${purgeable} LIMIT $1::integer`,
		values: [size],
	});
	return rows.map(identityFrom);
}

/** By their keys, so that a repeat of the statement, after a lost answer, removes no others. */
async function remove(table: ClaimTable, purgeable: string, chosen: Identity[]): Promise<Identity[]> {
	if (chosen.length === 0) return [];
	const doubt: Doubt = { inDoubt: false };
	try {
		const rows = await table.send({
			writes: true,
			doubt,
			text: `
				WITH gone AS MATERIALIZED (
					SELECT claim.ctid AS place
					  FROM ${BOUNDED_WAIT}, ${itemsOf('$2', KEY_RECORD, chosen.length > 1)} JOIN ${table.name} AS claim ON ${SAME_CLAIM}
					 WHERE ${purgeable} FOR UPDATE OF claim SKIP LOCKED)
				DELETE FROM ${table.name} AS claim USING gone WHERE claim.ctid = gone.place AND ${purgeable}
				RETURNING ${KEY_COLUMNS}`,
			values: [JSON.stringify(chosen.map(keyOf))],
		});
		if (!doubt.inDoubt) return rows.map(identityFrom);
	} catch (failure) {
		throw await deleteRefused(table, failure);
	}
	// What an unanswered sending removed is no longer there.
	const left = await readClaims(table, chosen);
	return chosen.filter((identity) => !left.has(identityText(identity)));
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
