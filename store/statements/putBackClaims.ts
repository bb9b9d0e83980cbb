import type { Ownership } from '../handle';
import type { Owner } from '../record';
import { keyOf } from '../request';
import { BOUNDED_WAIT, historyEntry, itemsOf, KEY_RECORD, purgeAfter, SAME_CLAIM } from '../sql';
import type { ClaimTable } from '../table/claimTable';

/**
 * Gives claims back that a run has just made and whose action will not begin: due for another attempt at once, and
 * the attempt that was counted for it does not count.
 * The caller made them a moment ago and nobody has its tokens, so the token alone tells that they are still its own.
 * A delivery stored by `receive` stays as it is; it waits for its work already.
 *
 * @throws ClaimError
 */
export async function putBackClaims(table: ClaimTable, owner: Owner, claims: ReadonlyArray<Pick<Ownership, 'identity' | 'ownerToken'>>, reason: string): Promise<void> {
	if (claims.length === 0) return;
	await table.send({
		writes: true,
		text: `
			UPDATE ${table.name} AS claim
			   SET state = 'retryable_failure', attempt = greatest(claim.attempt - 1, 0), lease_expires_at = NULL, retry_at = clock_timestamp(), updated_at = clock_timestamp(),
			       outcome_reason = $3, outcome_recorded_at = clock_timestamp(),
			       purge_after = ${purgeAfter(`'retryable_failure'`, 'claim.environment', 'claim.retention_days')},
			       history = claim.history || ${historyEntry({ state: `'retryable_failure'`, version: 'claim.version', attempt: 'greatest(claim.attempt - 1, 0)', workflow: '$4', execution: '$5', by: '$6', reason: `'put_back'`, reference: 'NULL' })}
			  FROM ${BOUNDED_WAIT}, ${itemsOf('$2', `${KEY_RECORD}, owner_token text`, claims.length > 1)}
			 WHERE ${SAME_CLAIM}
			   AND claim.owner_token = item.owner_token
			   AND claim.state IN ('processing', 'completed')`,
		values: [
			JSON.stringify(claims.map(({ identity, ownerToken }) => ({ ...keyOf(identity), owner_token: ownerToken }))),
			reason,
			owner.workflowId,
			owner.executionId,
			owner.nodeName,
		],
	});
}
