import type { ICredentialDataDecryptedObject, IDataObject } from 'n8n-workflow';
import { readHandle } from '../../../store/handle';
import type { FinishedRun } from '../../support/engine';
import { startProxy, type Proxy } from '../../support/proxy';
import { answerOf, settle } from '../../support/settling';
import { claimNode, claimsOf, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, Workbench, type Claim } from '../../support/workbench';

/** What a fault test does and looks at, whatever the fault is. */

export type Credential = ICredentialDataDecryptedObject;

/** The nodes, and a line to their store that breaks on demand. */
export interface Rig {
	readonly workbench: Workbench;
	readonly proxy: Proxy;
	/** Leads through the proxy. */
	readonly store: Credential;
	close: () => Promise<void>;
}

/** One for a test file. The table is there already. */
export async function openRig(timeoutMs: number): Promise<Rig> {
	const workbench = await Workbench.open();
	const proxy = await startProxy(workbench.database);
	await claimInPeace(workbench, 'first of all');
	return {
		workbench,
		proxy,
		store: workbench.credential({ port: proxy.port, timeoutMs }),
		async close() {
			await proxy.close();
			await workbench.close();
		},
	};
}

/** A login that may only use the claim table, and that a test may hinder. */
export async function addGuest({ database }: Workbench, user: string): Promise<{ user: string; password: string }> {
	await database.query(`CREATE ROLE ${user} LOGIN PASSWORD '${GUEST_PASSWORD}'`);
	await database.query(`GRANT SELECT, INSERT, UPDATE ON idempotent_claims TO ${user}`);
	return { user, password: GUEST_PASSWORD };
}

export const GUEST_PASSWORD = 'guest-only';

/** What each item of a claiming run said, in input order: `new`, `duplicate completed`, `error store_busy 53300 503`. */
export async function claim(workbench: Workbench, store: Credential, ids: string[], parameters: IDataObject = {}): Promise<string[]> {
	return (await claimFields(workbench, store, ids, parameters)).map(inWords);
}

/** The claim field of each item, in input order. */
export async function claimFields(workbench: Workbench, store: Credential, ids: string[], parameters: IDataObject = {}): Promise<Claim[]> {
	const run = await workbench.run(guarded(claimNode(parameters)), { items: deliveries(...ids), credentials: { store } });
	await checkPromises(workbench, run, ids, parameters.operation === 'receive');
	const said = new Map<string, Claim>();
	for (const output of [NEW_CLAIM, KNOWN_DUPLICATE, OPERATIONAL_ERROR]) {
		for (const json of run.allOutputOf('Claim', output)) said.set(json.id as string, json.claim as unknown as Claim);
	}
	return ids.map((id) => said.get(id) as Claim);
}

/** What Complete Claim said of one claim: `recorded`, `stale taken_over`, `error outcome_unknown 503`. */
export async function complete(workbench: Workbench, store: Credential, handle: string, reference: string): Promise<string> {
	const answer = answerOf(await settle(workbench, [handle], { outcomeReference: reference }, { credentials: { store } }));
	checkError(answer);
	return inWords(answer);
}

/** Claims one delivery past all faults and gives its handle. */
export async function claimInPeace(workbench: Workbench, id: string, parameters: IDataObject = {}): Promise<string> {
	const run = await workbench.run(guarded(claimNode(parameters)), { items: deliveries(id) });
	return String(claimsOf(run, 'Claim', NEW_CLAIM)[0].handle);
}

/** The owner token in a handle. */
export function tokenOf({ handle }: Claim): string {
	return readHandle(handle).ownerToken;
}

/** The two promises, whatever else happened: one verdict for each item, and no New Claim without a row that carries its token. */
async function checkPromises(workbench: Workbench, run: FinishedRun, ids: string[], onlyStores: boolean): Promise<void> {
	const left = [NEW_CLAIM, KNOWN_DUPLICATE, OPERATIONAL_ERROR].flatMap((output) => run.allOutputOf('Claim', output).map(({ id }) => id as string));
	expect(left.sort()).toEqual([...ids].sort());
	for (const claimed of claimsOf(run, 'Claim', NEW_CLAIM)) {
		const row = await workbench.row(String(claimed.deliveryId));
		// What is only stored has no owner, and so no handle.
		if (onlyStores) expect([row.state, claimed.handle]).toEqual(['received', null]);
		else expect({ token: row.owner_token, version: row.version }).toEqual({ token: tokenOf(claimed), version: claimed.version });
	}
	for (const failed of claimsOf(run, 'Claim', OPERATIONAL_ERROR)) {
		checkError(failed);
		// Only what may have been claimed has a handle.
		expect(failed.handle).toEqual(failed.error?.kind === 'outcome_unknown' && !onlyStores ? expect.any(String) : null);
	}
}

/** What every error tells: what to do, and whether waiting may help. */
function checkError({ error }: Claim): void {
	if (!error) return;
	expect(error).toMatchObject({ message: expect.stringMatching(/\w/) as string, hint: expect.stringMatching(/\w/) as string });
	expect(error.retryable).toBe(['store_unreachable', 'store_busy', 'outcome_unknown'].includes(error.kind));
}

function inWords({ status, reason, responseCode, error }: Claim): string {
	if (error) return ['error', error.kind, error.sqlState, responseCode].filter((word) => word !== null).join(' ');
	return [status, status === 'new' || status === 'recorded' ? null : reason].filter((word) => word !== null).join(' ');
}
