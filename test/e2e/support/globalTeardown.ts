import { copyFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { RESULTS_FOLDER } from './address';

export default async function globalTeardown(): Promise<void> {
	if (!globalThis.e2e) return;
	const { sandbox, folder } = globalThis.e2e;
	await sandbox.stop();
	await copyFile(sandbox.logFile, path.join(RESULTS_FOLDER, 'n8n.log'));
	await rm(folder, { recursive: true, force: true });
}
