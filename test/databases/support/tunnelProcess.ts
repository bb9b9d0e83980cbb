import { tunnelOf } from '../../../nodes/shared/tunnel';
import { openClaimStore } from '../../../store/claimStore';
import { readSettings, type ClaimStoreCredential } from '../../../store/connection/settings';
import { anOwner, aRequest, inShort } from '../../store/support/claims';

/** A process that claims once through a tunnel, with n8n's SSH client, and then has nothing more to do. It closes nothing. */

export interface TunnelReport {
	answer: string;
	/** What is open in the process, by kind. */
	open: string[];
}

process.once('message', (credential: ClaimStoreCredential) => void claimOnce(credential));

async function claimOnce(credential: ClaimStoreCredential): Promise<void> {
	const settings = readSettings(credential);
	// As a polling trigger, to which n8n gives no SSH client.
	const store = openClaimStore(settings, undefined, tunnelOf({ helpers: {} }, settings));
	const [answer] = await store.claim('claim', anOwner(), [aRequest()]);
	const report: TunnelReport = { answer: inShort(answer), open: process.getActiveResourcesInfo() };
	process.send?.(report, () => process.disconnect());
}
