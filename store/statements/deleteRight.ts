import { ClaimError } from '../errors';
import type { ClaimTable } from '../table/claimTable';

/**
 * What a refused DELETE means. Only purging needs the right to delete, so the general words about rights do not name it.
 */
export async function deleteRefused(table: ClaimTable, failure: unknown): Promise<unknown> {
	if (!(failure instanceof ClaimError) || failure.sqlState !== '42501') return failure;
	const { user } = table.connection.settings;
	const [{ may_delete: mayDelete }] = await table.send({ writes: false, text: `SELECT has_table_privilege($1, 'DELETE') AS may_delete`, values: [table.name] });
	if (mayDelete === 't') return failure;
	return new ClaimError('store_denied', `The database user "${user}" lacks the right DELETE on ${table.name}`, {
		hint: `Only purging needs it. Run GRANT DELETE ON ${table.name} TO ${JSON.stringify(user)}, or purge with a credential whose user has it.`,
		sqlState: failure.sqlState,
	});
}
