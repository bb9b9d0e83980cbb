import type { IExecuteFunctions, IPollFunctions } from 'n8n-workflow';
import { sharedClaimStore, type ClaimStore } from '../../store/claimStore';
import { readSettings, type ClaimStoreCredential } from '../../store/connection/settings';
import { invalidSetting } from '../../store/errors';

/**
 * The store that the node's credential names.
 *
 * @throws ClaimError; the reason why n8n has no credential is not repeated, it may hold a secret
 */
export async function claimStoreOf(context: IExecuteFunctions | IPollFunctions): Promise<ClaimStore> {
	let credential: ClaimStoreCredential;
	try {
		credential = await context.getCredentials<ClaimStoreCredential>('claimStoreApi');
	} catch {
		throw invalidSetting('n8n could not give this node its Claim Store credential', 'Choose a Claim Store (Postgres) credential in the node; if one is chosen, open it and save it again.');
	}
	const { logger } = context;
	return sharedClaimStore(readSettings(credential), (line) => logger.warn(line));
}
