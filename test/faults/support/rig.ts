import type { ICredentialDataDecryptedObject, IDataObject } from 'n8n-workflow';
import { readHandle } from '../../../store/handle';
import type { FinishedRun } from '../../support/engine';
import { answerOf, settle } from '../../support/settling';
import { claimNode, claimsOf, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, type Claim, type Workbench } from '../../support/workbench';

/** What a fault test does and looks at, whatever the fault is. */

export type Credential = ICredentialDataDecryptedObject;

/** What each item of a claiming run said, in input order: `new`, `duplicate completed`, `error store_busy 503`. */
export async function claim(workbench: Workbench, store: Credential, ids: string[], parameters: IDataObject = {}): Promise<string[]> {
	const run = await workbench.run(guarded(claimNode(parameters)), { items: deliveries(...ids), credentials: { store } });
	await checkPromises(workbench, run, ids);
	const said = new Map<string, string>();
	for (const output of [NEW_CLAIM, KNOWN_DUPLICATE, OPERATIONAL_ERROR]) {
		for (const json of run.allOutputOf('Claim', output)) said.set(json.id as string, inWords(json.claim as unknown as Claim));
	}
	return ids.map((id) => said.get(id) ?? 'nothing');
}

/** What Complete Claim said of one claim. */
export async function complete(workbench: Workbench, store: Credential, handle: string, reference: string): Promise<string> {
	const { status, reason, error } = answerOf(await settle(workbench, [handle], { outcomeReference: reference }, { credentials: { store } }));
	return error ? `error ${error.kind}` : status === 'stale' ? `stale ${reason}` : status;
}

/** Claims one delivery past all faults and gives its handle. */
export async function claimInPeace(workbench: Workbench, id: string, parameters: IDataObject = {}): Promise<string> {
	const run = await workbench.run(guarded(claimNode(parameters)), { items: deliveries(id) });
	return String(claimsOf(run, 'Claim', NEW_CLAIM)[0].handle);
}

/** The two promises, whatever else happened: one verdict for each item, and no New Claim without a row that carries its token. */
async function checkPromises(workbench: Workbench, run: FinishedRun, ids: string[]): Promise<void> {
	const left = [NEW_CLAIM, KNOWN_DUPLICATE, OPERATIONAL_ERROR].flatMap((output) => run.allOutputOf('Claim', output).map(({ id }) => id as string));
	expect(left.sort()).toEqual([...ids].sort());
	for (const { deliveryId, handle, version } of claimsOf(run, 'Claim', NEW_CLAIM)) {
		const row = await workbench.row(String(deliveryId));
		expect({ token: row.owner_token, version: row.version }).toEqual({ token: readHandle(handle).ownerToken, version });
	}
}

function inWords({ status, reason, responseCode, error }: Claim): string {
	if (status === 'error') return `error ${error?.kind} ${responseCode}`;
	return status === 'duplicate' ? `duplicate ${reason}` : 'new';
}
