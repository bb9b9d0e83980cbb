import type { Ownership } from '../handle';
import type { Owner } from '../record';
import { keyOf, ownerOf } from '../request';
import { BOUNDED_WAIT, historyEntry, itemsOf, KEY_RECORD, OWNER_RECORD, SAME_CLAIM } from '../sql';
import type { ClaimTable } from '../table/claimTable';

/** What a replaced owner says that it created. */
export interface StaleReference {
	readonly caller: Owner;
	readonly claim: Ownership;
	readonly reference: string;
	readonly reason: string;
}

/**
 * Appends what replaced owners created to their records' histories, once: it may be the only evidence of a double
 * action. Nothing else of the record changes.
 *
 * @throws ClaimError
 */
export async function noteStaleReferences(table: ClaimTable, references: readonly StaleReference[]): Promise<void> {
	if (references.length === 0) return;
	const entry = historyEntry({
		state: 'claim.state',
		version: 'item.version',
		attempt: 'claim.attempt',
		workflow: 'item.workflow_id',
		execution: 'item.execution_id',
		by: 'item.node_name',
		reason: 'item.reason',
		reference: 'item.reference',
	});
	await table.send({
		writes: true,
		separable: references.length > 1,
		text: `
			UPDATE ${table.name} AS claim
			   SET history = claim.history || ${entry}
			  FROM ${BOUNDED_WAIT}, ${itemsOf('$2', `${KEY_RECORD}, version integer, reason text, reference text, ${OWNER_RECORD}`, references.length > 1)}
			 WHERE ${SAME_CLAIM}
			   AND NOT claim.history @> jsonb_build_array(jsonb_build_object('version', item.version, 'reason', item.reason, 'reference', item.reference))`,
		values: [JSON.stringify(references.map(({ caller, claim, reason, reference }) => ({ ...keyOf(claim.identity), version: claim.version, reason, reference, ...ownerOf(caller) })))],
	});
}
