import type { IExecuteFunctions, IPollFunctions } from 'n8n-workflow';
import { sharedClaimStore, type ClaimStore } from '../../store/claimStore';
import { readSettings, type ClaimStoreCredential, type ConnectionSettings } from '../../store/connection/settings';
import { invalidSetting } from '../../store/errors';

/**
 * The store that the node's credential names.
 *
 * @throws ClaimError as `connectionSettingsOf` does
 */
export async function claimStoreOf(context: IExecuteFunctions | IPollFunctions): Promise<ClaimStore> {
	const { logger } = context;
	return sharedClaimStore(await connectionSettingsOf(context), (line) => logger.warn(line));
}

/**
 * How to reach that store.
 *
 * @throws ClaimError; the reason why n8n has no credential is not repeated, it may hold a secret
 */
export async function connectionSettingsOf(context: IExecuteFunctions | IPollFunctions): Promise<ConnectionSettings> {
	let credential: ClaimStoreCredential;
	try {
		credential = await context.getCredentials<ClaimStoreCredential>('claimStoreApi');
	} catch {
		throw invalidSetting('n8n could not give this node its Claim Store credential', 'Choose a Claim Store (Postgres) credential in the node; if one is chosen, open it and save it again.');
	}
	return readSettings(credential);
}
