import { rm } from 'node:fs/promises';

export default async function globalTeardown(): Promise<void> {
	await globalThis.testPostgres?.stop();
	if (process.env.TEST_FOLDER) await rm(process.env.TEST_FOLDER, { recursive: true, force: true });
}
