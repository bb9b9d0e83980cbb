import { isoInstant } from '../sql';
import type { ClaimTable } from '../table/claimTable';
import type { State } from '../record';
import type { Identity } from '../identity';

/** How many claims of one sender are in one state. */
export interface ClaimCount {
	readonly environment: Identity['environment'];
	readonly source: string;
	readonly state: State;
	readonly claims: number;
	/** When the oldest of them was first seen. */
	readonly oldest: string;
	/** Whose lease has ended without an outcome. */
	readonly leasesExpired: number;
	/** Which only the sender can bring back: no complete payload is stored. */
	readonly withoutPayload: number;
}

/** Counting finished claims reads all of them, which takes its time in a large table. */
const COUNT_TIMEOUT_MS = 120_000;

/**
 * Counts by environment, source and state.
 *
 * @throws ClaimError
 */
export async function summarizeClaims(table: ClaimTable): Promise<ClaimCount[]> {
	const rows = await table.send({
		writes: false,
		timeoutMs: COUNT_TIMEOUT_MS,
		text: `
			SELECT claim.environment, claim.source, claim.state, count(*) AS claims,
			       ${isoInstant('min(claim.first_seen_at)')} AS oldest,
			       count(*) FILTER (WHERE claim.state <> 'completed' AND claim.lease_expires_at <= clock_timestamp()) AS leases_expired,
			       count(*) FILTER (WHERE claim.state <> 'completed' AND NOT claim.payload_complete) AS without_payload
			  FROM ${table.name} AS claim
			 GROUP BY claim.environment, claim.source, claim.state
			 ORDER BY claim.environment, claim.source, claim.state`,
		values: [],
	});
	return rows.map((row) => ({
		environment: row.environment as ClaimCount['environment'],
		source: row.source ?? '',
		state: row.state as State,
		claims: Number(row.claims),
		oldest: row.oldest ?? '',
		leasesExpired: Number(row.leases_expired),
		withoutPayload: Number(row.without_payload),
	}));
}
