import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ensureDatabase } from '../../../sandbox/databases';
import type { SandboxAddress } from './address';
import { moveIn, startAnother, type Surroundings } from './anotherN8n';

/** What a test file needs to work with the second n8n. */
export type SecondN8nAddress = Pick<SandboxAddress, 'n8nUrl' | 'sessionCookie' | 'credentials'>;

export interface SecondN8n {
	/** Starts it, and the first one again: there is one machine for both. */
	start: () => Promise<SecondN8nAddress>;
	/** Stops it where it runs. */
	stop: () => Promise<void>;
	/** Stops it, and lets the first one do as much at once as before. */
	leave: () => Promise<void>;
}

const LOGIN = { email: 'second-owner@example.com', password: 'Sandbox-only-3' };

/**
 * While there are two, each runs only so many executions at once; the others wait their turn. Without a bound, n8n
 * runs all of them, and where the machine is slow they wait so long for connections to n8n's own database that some
 * never start.
 */
const BOUND = 'N8N_CONCURRENCY_PRODUCTION_LIMIT=10';

/**
 * One more n8n, as somebody else would run it: with a database, a user folder, an encryption key and an owner of its
 * own. It shares nothing with the sandbox's n8n but the server and the claim store.
 */
export function secondN8n(surroundings: Surroundings): SecondN8n {
	const { sandbox, dataFolder } = surroundings;
	// Both n8n read it, because both are started in this folder.
	const settingsFile = path.join(dataFolder, '.env');
	let current: ReturnType<typeof startSecond> | undefined;
	let usualSettings: string | undefined;

	const startFirstAgain = async (settings: string) => {
		await writeFile(settingsFile, settings);
		await sandbox.killN8n();
		await sandbox.restartN8n();
	};
	const stop = async () => {
		const ending = current;
		current = undefined;
		// One that never came up has been ended by its start.
		await (await ending?.catch(() => undefined))?.stop();
	};
	return {
		stop,
		async start() {
			usualSettings = await readFile(settingsFile, 'utf8');
			await startFirstAgain(`${usualSettings}\n${BOUND}`);
			current = startSecond(surroundings);
			return (await current).address;
		},
		async leave() {
			await stop();
			if (usualSettings !== undefined) await startFirstAgain(usualSettings);
		},
	};
}

async function startSecond(surroundings: Surroundings): Promise<{ address: SecondN8nAddress; stop: () => Promise<void> }> {
	const { sandbox, claimStorePort } = surroundings;
	const { url, n8n } = await startAnother(surroundings, 'second-n8n', { database: await ensureDatabase(sandbox.parts.postgres, 'second_n8n') });
	try {
		const { address } = await moveIn(url, LOGIN, { ...sandbox.claimStoreDatabase, port: claimStorePort });
		return { address, stop: async () => await n8n.stop() };
	} catch (error) {
		await n8n.stop();
		throw error;
	}
}
