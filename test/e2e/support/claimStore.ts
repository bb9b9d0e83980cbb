import { randomUUID } from 'node:crypto';
import { storeSettings, type Named } from '../../../sandbox/setup';
import { sandboxAddress } from './address';
import type { N8n } from './n8n';

/** Settings of a credential whose database does not answer. */
export const AWAY = { port: 9, timeoutMs: 1000 };

/**
 * A claim table of a test's own, which its first claim makes, and the credential that leads to it.
 *
 * @param changes of the credential's settings
 */
export async function createClaimStore(n8n: N8n, kind: string, changes: Record<string, unknown> = {}): Promise<{ table: string; credential: Named }> {
	const table = `${kind}_${randomUUID().slice(0, 8)}`;
	const data = { ...storeSettings(sandboxAddress().claimStoreDatabase, table), ...changes };
	const { id, name } = await n8n.rest.post<Named>('/rest/credentials', { name: table, type: 'claimStoreApi', data });
	return { table, credential: { id, name } };
}
