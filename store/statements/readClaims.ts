import { firstOfEach } from '../batches';
import { identityText, type Identity } from '../identity';
import { recordFrom, recordsOf, RECORD_COLUMN, type ClaimRecord, type Owner } from '../record';
import { keyOf } from '../request';
import { builtOnce, itemsOf, KEY_RECORD, SAME_CLAIM } from '../sql';
import type { ClaimTable } from '../table/claimTable';

/**
 * Reads records, in a statement of its own: the one that lost to a conflict has a snapshot too old to see why.
 *
 * @returns the records that exist, by `identityText`
 * @throws ClaimError
 */
export async function readClaims(table: ClaimTable, identities: readonly Identity[]): Promise<Map<string, ClaimRecord>> {
	if (identities.length === 0) return new Map();
	const unique = firstOfEach(identities, identityText);
	const several = unique.length > 1;
	const rows = await table.send({
		writes: false,
		prepare: !several,
		text: readText(table.name, several),
		values: [JSON.stringify(unique.map(keyOf))],
	});
	return recordsOf(rows);
}

const readText = builtOnce(
	(table: string, several: boolean) => `
		SELECT ${RECORD_COLUMN}
		  FROM ${itemsOf('$1', KEY_RECORD, several)}
		  JOIN ${table} AS claim ON ${SAME_CLAIM}`,
);

/**
 * What an execution holds: claims in processing, and with `alsoUncertain` those of outcome_uncertain too.
 *
 * @throws ClaimError
 */
export async function readClaimsOfExecution(
	table: ClaimTable,
	{ instanceId, executionId }: Pick<Owner, 'instanceId' | 'executionId'>,
	alsoUncertain: boolean,
): Promise<ClaimRecord[]> {
	const rows = await table.send({
		writes: false,
		text: `
			SELECT ${RECORD_COLUMN}
			  FROM ${table.name} AS claim
			 WHERE claim.owner_execution_id = $1 AND claim.owner_instance_id = $2
			   AND claim.state IN ('processing', 'outcome_uncertain')
			   AND (claim.state = 'processing' OR $3)
			 ORDER BY claim.first_seen_at`,
		values: [executionId, instanceId, alsoUncertain],
	});
	return rows.map(recordFrom);
}
