import { once } from 'node:events';
import { copyFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { RESULTS_FOLDER, sandboxAddress } from './address';

export default async function globalTeardown(): Promise<void> {
	if (!globalThis.e2e) return;
	const { sandbox, folder } = globalThis.e2e;
	if (sandbox.exitCode === null) {
		const ended = once(sandbox, 'exit');
		sandbox.send('stop');
		await ended;
	}
	await copyFile(sandboxAddress().logFile, path.join(RESULTS_FOLDER, 'n8n.log'));
	await rm(folder, { recursive: true, force: true });
}
