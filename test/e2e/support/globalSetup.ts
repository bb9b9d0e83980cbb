import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { freePorts } from '../../../sandbox/ports';
import { createProgress } from '../../../sandbox/progress';
import { SANDBOX_STAGES, startSandbox, type Sandbox } from '../../../sandbox/sandbox';
import { RESULTS_FOLDER, type SandboxAddress } from './address';

declare global {
	// The only thing that setup and teardown share; test files see the environment variable.
	var e2e: { sandbox: Sandbox; folder: string } | undefined;
}

/** One sandbox for the whole run, with ports and data of its own: one that `npm start` runs is not touched. */
export default async function globalSetup(): Promise<void> {
	await rm(RESULTS_FOLDER, { recursive: true, force: true });
	await mkdir(RESULTS_FOLDER, { recursive: true });
	const folder = await mkdtemp(path.join(os.tmpdir(), 'idempotent-claim-e2e-'));
	// Started by root, PostgreSQL runs as another user, who must get through this folder.
	await chmod(folder, 0o755);
	const ports = await freePorts();
	try {
		const sandbox = await withDebugLog(folder, async () => await startSandbox({ dataFolder: folder, ports, progress: createProgress(SANDBOX_STAGES) }));
		globalThis.e2e = { sandbox, folder };
		const { n8nUrl, login, workflows, claimStoreDatabase, destinationUrl, logFile } = sandbox;
		const { id, name } = sandbox.credential;
		const address: SandboxAddress = { n8nUrl, login, credential: { id, name }, workflows, claimStoreDatabase, claimStorePort: ports.claimStore, destinationUrl, logFile };
		process.env.E2E_SANDBOX = JSON.stringify(address);
	} catch (error) {
		await rm(folder, { recursive: true, force: true });
		throw error;
	}
}

/** n8n reads further settings from a `.env` in the folder that it is started in. */
async function withDebugLog<Result>(folder: string, start: () => Promise<Result>): Promise<Result> {
	await writeFile(path.join(folder, '.env'), 'N8N_LOG_LEVEL=debug\n');
	const before = process.cwd();
	process.chdir(folder);
	try {
		return await start();
	} finally {
		process.chdir(before);
	}
}
