import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { ensureDatabase } from '../../../sandbox/databases';
import { startN8n, type N8nCommand, type RunningN8n } from '../../../sandbox/n8n';
import { installIntoN8n } from '../../../sandbox/packedPackage';
import { freePorts } from '../../../sandbox/ports';
import { N8nRest } from '../../../sandbox/rest';
import type { Sandbox } from '../../../sandbox/sandbox';
import { importExamples, saveCredentials } from '../../../sandbox/setup';
import { RESULTS_FOLDER, type SandboxAddress } from './address';
import { startRedis } from './redis';
import { Session } from './session';

/** What a test file needs to work with an n8n in queue mode. */
export interface QueueModeAddress extends Pick<SandboxAddress, 'sessionCookie' | 'credential' | 'claimStoreDatabase' | 'workflows'> {
	/** The main process: the editor and its REST interface. */
	n8nUrl: string;
	/** The webhook process, which a load balancer would send `/webhook/` to. */
	webhookUrl: string;
	/** n8n's own output, by process. */
	logFiles: Record<'main' | 'webhook' | WorkerName, string>;
}

export const WORKERS = ['worker1', 'worker2'] as const;
export type WorkerName = (typeof WORKERS)[number];

export interface QueueMode {
	/** Stops the sandbox's own n8n, for there is one machine for both, and starts main, workers, webhook process and Redis. */
	start: () => Promise<QueueModeAddress>;
	killWorker: (name: WorkerName) => Promise<void>;
	/** Starts a worker that was killed. */
	startWorker: (name: WorkerName) => Promise<void>;
	/** Stops what is running of it. */
	stop: () => Promise<void>;
	/** Stops it, and starts the sandbox's own n8n again. */
	leave: () => Promise<void>;
}

interface Surroundings {
	sandbox: Sandbox;
	claimStorePort: number;
	dataFolder: string;
	cancelSignal: AbortSignal;
}

const LOGIN = { email: 'queue-owner@example.com', password: 'Sandbox-only-4' };
const JOBS_AT_ONCE = '5';

/**
 * n8n in queue mode, each process with a user folder of its own, as in containers, and the package installed in every one. They share what
 * they must: n8n's database, Redis and the encryption key. Their claim store is a database of its own on the sandbox's server.
 */
export function queueMode({ sandbox, claimStorePort, dataFolder, cancelSignal }: Surroundings): QueueMode {
	const { installation, archive, postgres } = sandbox.parts;
	const encryptionKey = randomBytes(24).toString('hex');
	const stops: Array<() => Promise<void>> = [];
	const workers = new Map<WorkerName, RunningN8n>();
	let shared: { redisPort: number; database: Awaited<ReturnType<typeof ensureDatabase>> };

	const logOf = (name: string) => path.join(RESULTS_FOLDER, `queue-${name}.log`);

	const launch = async (name: string, command: N8nCommand, settings: Record<string, string> = {}): Promise<{ url: string; n8n: RunningN8n }> => {
		const folder = path.join(dataFolder, `queue-${name}`);
		await installIntoN8n(archive, folder, cancelSignal);
		const ports = await freePorts();
		const n8n = await startN8n({
			installation,
			folder,
			database: shared.database,
			ports,
			command,
			settings: {
				EXECUTIONS_MODE: 'queue',
				QUEUE_BULL_REDIS_HOST: '127.0.0.1',
				QUEUE_BULL_REDIS_PORT: String(shared.redisPort),
				N8N_ENCRYPTION_KEY: encryptionKey,
				...settings,
			},
			logFile: logOf(name),
			cancelSignal,
		});
		return { url: `http://127.0.0.1:${ports.n8n}`, n8n };
	};

	const startWorker = async (name: WorkerName) => {
		const { n8n } = await launch(name, 'worker', { N8N_CONCURRENCY_PRODUCTION_LIMIT: JOBS_AT_ONCE });
		workers.set(name, n8n);
	};
	const stop = async () => {
		await Promise.all([...workers.values()].map(async (worker) => await worker.stop()));
		workers.clear();
		for (const stopOne of stops.splice(0).reverse()) await stopOne();
	};

	const start = async (): Promise<QueueModeAddress> => {
		const redis = await startRedis(cancelSignal);
		stops.push(redis.stop);
		shared = { redisPort: redis.port, database: await ensureDatabase(postgres, 'queue_n8n') };
		const claimStoreDatabase = await ensureDatabase(postgres, 'queue_claim_store');

		const main = await launch('main', 'start', { N8N_DISABLE_PRODUCTION_MAIN_PROCESS: 'true', OFFLOAD_MANUAL_EXECUTIONS_TO_WORKERS: 'true' });
		stops.push(async () => await main.n8n.stop());
		const webhook = await launch('webhook', 'webhook');
		stops.push(async () => await webhook.n8n.stop());
		for (const name of WORKERS) await startWorker(name);

		const rest = new N8nRest(main.url);
		await rest.signIn(LOGIN);
		const credentials = await saveCredentials(rest, { ...claimStoreDatabase, port: claimStorePort });
		const workflows = await importExamples(rest, credentials, sandbox.destinationUrl);
		for (const workflow of Object.values(workflows)) workflow.webhookUrl = workflow.webhookUrl.replace(main.url, webhook.url);
		const { cookie } = await Session.open(main.url, LOGIN);
		const { id, name } = credentials.claimStoreApi;
		const logFiles = Object.fromEntries((['main', 'webhook', ...WORKERS] as const).map((process) => [process, logOf(process)])) as QueueModeAddress['logFiles'];
		return { n8nUrl: main.url, webhookUrl: webhook.url, sessionCookie: cookie, credential: { id, name }, claimStoreDatabase, workflows, logFiles };
	};

	return {
		stop,
		startWorker,
		async start() {
			await sandbox.killN8n();
			try {
				return await start();
			} catch (error) {
				await stop();
				throw error;
			}
		},
		async killWorker(name) {
			await workers.get(name)?.kill();
			workers.delete(name);
		},
		async leave() {
			await stop();
			await sandbox.restartN8n();
		},
	};
}
