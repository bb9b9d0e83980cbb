import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { RESULTS_FOLDER, type SandboxAddress } from './address';

declare global {
	// The only thing that setup and teardown share; test files see the environment variable.
	var e2e: { sandbox: ChildProcess; folder: string } | undefined;
}

const N8N_SETTINGS = [
	'N8N_LOG_LEVEL=debug',
	// With its usual two connections n8n can wait so long for one, under load, that it takes its own database for
	// dead, and answers every webhook with 503 before a workflow starts.
	'DB_POSTGRESDB_POOL_SIZE=10',
	'DB_PING_TIMEOUT_MS=30000',
];

/** One sandbox for the whole run, with ports and data of its own: one that `npm start` runs is not touched. */
export default async function globalSetup(): Promise<void> {
	await rm(RESULTS_FOLDER, { recursive: true, force: true });
	await mkdir(RESULTS_FOLDER, { recursive: true });
	const folder = await mkdtemp(path.join(os.tmpdir(), 'idempotent-claim-e2e-'));
	// Started by root, PostgreSQL runs as another user, who must get through this folder.
	await chmod(folder, 0o755);
	// n8n reads further settings from a `.env` in the folder that it is started in.
	await writeFile(path.join(folder, '.env'), N8N_SETTINGS.join('\n'));

	const sandbox = fork(path.join(__dirname, 'sandboxProcess.ts'), [folder], { execArgv: ['--import', require.resolve('tsx')], cwd: folder });
	globalThis.e2e = { sandbox, folder };
	const [address] = (await Promise.race([once(sandbox, 'message'), once(sandbox, 'exit')])) as [SandboxAddress | number];
	if (typeof address !== 'object' || address === null) {
		await rm(folder, { recursive: true, force: true });
		throw new Error('The sandbox did not start; what it said is above.');
	}
	process.env.E2E_SANDBOX = JSON.stringify(address);
}
