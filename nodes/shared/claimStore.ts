import type { IExecuteFunctions, IPollFunctions } from 'n8n-workflow';
import { sharedClaimStore, type ClaimStore } from '../../store/claimStore';
import { readSettings, type ClaimStoreCredential, type ConnectionSettings } from '../../store/connection/settings';
import type { OpenLine } from '../../store/connection/tunnel';
import { invalidSetting } from '../../store/errors';
import { tunnelOf } from './tunnel';

/**
 * The store that the node's credential names.
 *
 * @throws ClaimError as `wayToStore` does
 */
export async function claimStoreOf(context: IExecuteFunctions | IPollFunctions): Promise<ClaimStore> {
	const { logger } = context;
	const { settings, openLine } = await wayToStore(context);
	return sharedClaimStore(settings, (line) => logger.warn(line), openLine);
}

/**
 * How to reach that store.
 *
 * @throws ClaimError; the reason why n8n has no credential is not repeated, it may hold a secret
 */
export async function wayToStore(context: IExecuteFunctions | IPollFunctions): Promise<{ settings: ConnectionSettings; openLine: OpenLine | undefined }> {
	let credential: ClaimStoreCredential;
	try {
		credential = await context.getCredentials<ClaimStoreCredential>('claimStoreApi');
	} catch {
		throw invalidSetting('n8n could not give this node its Claim Store credential', 'Choose a Claim Store (Postgres) credential in the node; if one is chosen, open it and save it again.');
	}
	const settings = readSettings(credential);
	return { settings, openLine: tunnelOf(context, settings) };
}
