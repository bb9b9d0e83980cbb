import { ClaimStore } from '../../../store/claimStore';
import { Connection } from '../../../store/connection/connection';
import type { ConnectionSettings } from '../../../store/connection/settings';
import { ClaimTable, type TableDefinition } from '../../../store/table/claimTable';
import { anIdentity, anOwner, aRequest, inShort } from '../../store/support/claims';

/**
 * One n8n process that has not claimed yet. At each order it begins from nothing (no connection, no look at the
 * table), claims one delivery of its own and one that all processes claim, and reports what it was told.
 */

export interface FirstClaims {
	settings: ConnectionSettings;
	/** What its version of the package needs the table to be. */
	definition: TableDefinition;
	own: string;
	shared: string;
}

/** The answers to the own delivery and to the shared one. */
export type FirstAnswers = [own: string, shared: string];

async function claimFirst({ settings, definition, own, shared }: FirstClaims): Promise<FirstAnswers> {
	const store = new ClaimStore(new ClaimTable(new Connection(settings), definition));
	const answers = await Promise.all([own, shared].map(async (deliveryId) => (await store.claim('claim', anOwner(), [aRequest({ identity: anIdentity({ deliveryId }) })]))[0]));
	await store.close();
	return answers.map(inShort) as FirstAnswers;
}

process.on('message', (order) => void claimFirst(order as FirstClaims).then((answers) => process.send?.(answers)));
process.on('disconnect', () => process.exit());
process.send?.('ready');
