import path from 'node:path';
import type { Database } from '../../../sandbox/databases';
import type { Credentials, ImportedWorkflow } from '../../../sandbox/setup';

/** Screenshots and n8n's log of the last run; git ignores it. */
export const RESULTS_FOLDER = path.join(__dirname, '..', 'results');

/** What test files know of the sandbox that globalSetup started. */
export interface SandboxAddress {
	n8nUrl: string;
	login: { email: string; password: string };
	/** Of the owner's login to the REST interface that this run shares. */
	sessionCookie: string;
	/** In n8n. */
	credentials: Credentials;
	/** The imported examples, by their file's name without `.json`. */
	workflows: Record<string, ImportedWorkflow>;
	/** Straight to PostgreSQL. */
	claimStoreDatabase: Database;
	/** The port of the same database that n8n's credential uses. */
	claimStorePort: number;
	destinationUrl: string;
	logFile: string;
	/** Takes orders, see `sandboxProcess.ts`. */
	controlUrl: string;
}

export function sandboxAddress(): SandboxAddress {
	const handedOn = process.env.E2E_SANDBOX;
	if (!handedOn) throw new Error('No sandbox: run these tests with `npm run test:e2e`, whose globalSetup starts one');
	return JSON.parse(handedOn) as SandboxAddress;
}

/** Has the process that holds the sandbox do something, and answers what it says, see `sandboxProcess.ts`. */
export async function order<Answer>(what: string): Promise<Answer> {
	const response = await fetch(`${sandboxAddress().controlUrl}/${what}`, { method: 'POST' });
	const text = await response.text();
	if (!response.ok) throw new Error(`The order "${what}" could not be carried out: ${text}`);
	return JSON.parse(text) as Answer;
}
