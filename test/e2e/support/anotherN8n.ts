import path from 'node:path';
import type { Database } from '../../../sandbox/databases';
import { startN8n, type N8nOptions, type RunningN8n } from '../../../sandbox/n8n';
import { installIntoN8n } from '../../../sandbox/packedPackage';
import { freePorts } from '../../../sandbox/ports';
import { N8nRest } from '../../../sandbox/rest';
import type { Sandbox } from '../../../sandbox/sandbox';
import { saveCredentials } from '../../../sandbox/setup';
import { RESULTS_FOLDER, type SandboxAddress } from './address';
import { Session } from './session';

/** What one more n8n beside the sandbox's own is made of. */
export interface Surroundings {
	sandbox: Sandbox;
	/** The same way to the claim store's server as the first n8n's. */
	claimStorePort: number;
	dataFolder: string;
	cancelSignal: AbortSignal;
}

/** Where the output of an n8n of this name goes. */
export const logOf = (name: string) => path.join(RESULTS_FOLDER, `${name}.log`);

/** Starts an n8n, or one process of it, with a user folder of its own that has the package. */
export async function startAnother({ sandbox, dataFolder, cancelSignal }: Surroundings, name: string, options: Pick<N8nOptions, 'database' | 'command' | 'settings'>): Promise<{ url: string; n8n: RunningN8n }> {
	const { installation, archive } = sandbox.parts;
	const folder = path.join(dataFolder, name);
	await installIntoN8n(archive, folder, cancelSignal);
	const ports = await freePorts();
	const n8n = await startN8n({ ...options, installation, folder, ports, logFile: logOf(name), cancelSignal });
	return { url: `http://127.0.0.1:${ports.n8n}`, n8n };
}

/** Makes an n8n's owner, and in it the examples' credentials for this claim store. */
export async function moveIn(url: string, login: SandboxAddress['login'], claimStore: Database): Promise<{ rest: N8nRest; address: Pick<SandboxAddress, 'n8nUrl' | 'sessionCookie' | 'credentials'> }> {
	const rest = new N8nRest(url);
	await rest.signIn(login);
	const credentials = await saveCredentials(rest, claimStore);
	const { cookie } = await Session.open(url, login);
	return { rest, address: { n8nUrl: url, sessionCookie: cookie, credentials } };
}
