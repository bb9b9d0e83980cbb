import path from 'node:path';
import { Pool } from 'pg';
import { ensureDatabase, type Database } from './databases';
import { DestinationClient, startDestination } from './destination';
import { installN8n, type N8nInstallation } from './install';
import { startN8n, type N8nOptions, type RunningN8n } from './n8n';
import { installIntoN8n, packPackage } from './packedPackage';
import { checkPortsAreFree } from './ports';
import type { RunningPostgres } from './postgres';
import { startPostgresApart } from './postgresProcess';
import type { Progress } from './progress';
import { N8nRest } from './rest';
import { importExamples, saveCredentials, type Credentials, type ImportedWorkflow } from './setup';
import { LOGIN, type Ports } from './settings';
import { openStoreLine, type StoreLine } from './storeLine';

export const SANDBOX_STAGES = 8;

export interface SandboxOptions {
	dataFolder: string;
	ports: Ports;
	progress: Progress;
	/** Gives up what is being done, and takes down what was started so far. */
	cancelSignal?: AbortSignal;
}

/** A running n8n with the packed package in it, a claim store and a destination. */
export interface Sandbox {
	readonly n8nUrl: string;
	readonly login: { email: string; password: string };
	/** Signed in as the owner. */
	readonly rest: N8nRest;
	readonly credentials: Credentials;
	/** The example workflows, by their file's name without `.json`. */
	readonly workflows: Record<string, ImportedWorkflow>;
	/** Straight to the claim store's database, past the line that can be cut. */
	readonly claimStore: Pool;
	readonly claimStoreDatabase: Database;
	/** The way that n8n takes to the claim store. */
	readonly storeLine: StoreLine;
	readonly destinationUrl: string;
	readonly destination: DestinationClient;
	/** Where n8n's own output goes. */
	readonly logFile: string;
	/** What one more n8n beside this one can be made of. */
	readonly parts: { installation: N8nInstallation; archive: string; postgres: RunningPostgres };
	/** SIGKILL, to n8n and its task runners. */
	killN8n: () => Promise<void>;
	/** Starts n8n where it does not run; resolves when its workflows are active. */
	restartN8n: () => Promise<void>;
	/** Resolves when n8n ended although nobody here asked it to. */
	readonly lost: Promise<void>;
	/** Stops everything that was started. The data stays. */
	stop: () => Promise<void>;
}

/** @throws what a stage threw, after everything that was started before it has been stopped. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
	const { dataFolder, ports, progress, cancelSignal } = options;
	const stops: Array<() => Promise<void>> = [];
	const stop = async () => {
		for (const stopOne of stops.splice(0).reverse()) await stopOne();
	};
	const stage: Progress['stage'] = async (title, work) => {
		cancelSignal?.throwIfAborted();
		return await progress.stage(title, work);
	};

	try {
		await stage('Checking that the ports are free', async () => await checkPortsAreFree(ports));
		const { postgres, databases } = await stage('Starting PostgreSQL', async () => {
			const server = await startPostgresApart({ dataFolder: path.join(dataFolder, 'postgres'), port: ports.postgres });
			stops.push(server.stop);
			const made = {
				n8n: await ensureDatabase(server, 'n8n'),
				claimStore: await ensureDatabase(server, 'claim_store'),
				crm: await ensureDatabase(server, 'crm'),
			};
			return { postgres: server, databases: made };
		});
		const claimStore = new Pool(databases.claimStore);
		claimStore.on('error', () => {});
		stops.push(async () => await claimStore.end());

		const archive = await stage('Building and packing the package', async () => await packPackage(dataFolder, cancelSignal));
		const installation = await stage('Installing n8n', async (tell) => await installN8n(tell, cancelSignal));

		const n8nFolder = path.join(dataFolder, 'n8n');
		await stage('Installing the package into n8n, as a community package', async (tell) => {
			const installed = await installIntoN8n(archive, n8nFolder, cancelSignal);
			if (!installed) tell('is there already');
		});

		const { destinationUrl, storeLine } = await stage('Starting the destination and the line to the claim store', async () => {
			const destination = await startDestination(ports.destination, databases.crm);
			stops.push(destination.stop);
			const line = await openStoreLine(ports.claimStore, ports.postgres);
			stops.push(line.cut);
			return { destinationUrl: destination.url, storeLine: line };
		});

		const logFile = path.join(dataFolder, 'n8n.log');
		const n8n = keepN8n({ installation, folder: n8nFolder, database: databases.n8n, ports, logFile, cancelSignal });
		stops.push(n8n.stop);
		await stage('Starting n8n', async (tell) => {
			tell('the first time it makes its tables, a minute or two');
			await n8n.start();
			tell('its workflows are active');
		});

		const rest = new N8nRest(`http://127.0.0.1:${ports.n8n}`);
		const { credentials, workflows } = await stage('Setting up the account, the credentials and the workflows', async () => {
			await rest.signIn(LOGIN);
			const saved = await saveCredentials(rest, { ...databases.claimStore, port: ports.claimStore });
			return { credentials: saved, workflows: await importExamples(rest, saved, destinationUrl) };
		});

		return {
			n8nUrl: rest.url,
			login: LOGIN,
			rest,
			credentials,
			workflows,
			claimStore,
			claimStoreDatabase: databases.claimStore,
			storeLine,
			destinationUrl,
			destination: new DestinationClient(destinationUrl),
			logFile,
			parts: { installation, archive, postgres },
			killN8n: n8n.kill,
			restartN8n: n8n.start,
			lost: n8n.lost,
			stop,
		};
	} catch (error) {
		await stop();
		throw error;
	}
}

/** One n8n at a time: started, killed and started again; noticed when it ends by itself. */
function keepN8n(options: N8nOptions) {
	let current: Promise<RunningN8n> | undefined;
	let reportLost: () => void;
	const lost = new Promise<void>((resolve) => {
		reportLost = resolve;
	});
	const end = async (how: 'kill' | 'stop') => {
		const ending = current;
		current = undefined;
		// One that never came up has been ended by its start.
		const n8n = await ending?.catch(() => undefined);
		await n8n?.[how]();
	};
	return {
		lost,
		start: async () => {
			if (current) return;
			const starting = startN8n(options).catch((error) => {
				current = undefined;
				throw error;
			});
			current = starting;
			const { ended } = await starting;
			void ended.then(() => {
				if (current !== starting) return;
				current = undefined;
				reportLost();
			});
		},
		kill: async () => await end('kill'),
		stop: async () => await end('stop'),
	};
}
