import { randomBytes } from 'node:crypto';
import { ensureDatabase, type Database } from '../../../sandbox/databases';
import type { N8nCommand, RunningN8n } from '../../../sandbox/n8n';
import { importExamples } from '../../../sandbox/setup';
import type { SandboxAddress } from './address';
import { logOf, moveIn, startAnother, type Surroundings } from './anotherN8n';
import { startRedis } from './redis';

/** What a test file needs to work with an n8n in queue mode. */
export interface QueueModeAddress extends Pick<SandboxAddress, 'sessionCookie' | 'claimStoreDatabase'> {
	/** The main process: the editor and its REST interface. */
	n8nUrl: string;
	/** Their webhooks are at the webhook process, which a load balancer would send `/webhook/` to. */
	workflows: SandboxAddress['workflows'];
	/** n8n's own output. */
	workerLogs: Record<WorkerName, string>;
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

const LOGIN = { email: 'queue-owner@example.com', password: 'Sandbox-only-4' };
const JOBS_AT_ONCE = '5';
/** Of a process, for its folder and its log. */
const nameOf = (process: string) => `queue-${process}`;

/**
 * n8n in queue mode, each process with a user folder of its own, as in containers, and the package installed in every one. They share what
 * they must: n8n's database, Redis and the encryption key. Their claim store is a database of its own on the sandbox's server.
 */
export function queueMode(surroundings: Surroundings): QueueMode {
	const { sandbox, claimStorePort, cancelSignal } = surroundings;
	const { postgres } = sandbox.parts;
	const encryptionKey = randomBytes(24).toString('hex');
	const stops: Array<() => Promise<void>> = [];
	const workers = new Map<WorkerName, RunningN8n>();
	let shared: { database: Database; redisPort: number };

	const launch = async (name: string, command: N8nCommand, settings: Record<string, string> = {}) =>
		await startAnother(surroundings, nameOf(name), {
			database: shared.database,
			command,
			settings: {
				EXECUTIONS_MODE: 'queue',
				QUEUE_BULL_REDIS_HOST: '127.0.0.1',
				QUEUE_BULL_REDIS_PORT: String(shared.redisPort),
				N8N_ENCRYPTION_KEY: encryptionKey,
				...settings,
			},
		});

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

		const { rest, address } = await moveIn(main.url, LOGIN, { ...claimStoreDatabase, port: claimStorePort });
		const workflows = await importExamples(rest, address.credentials, sandbox.destinationUrl);
		for (const workflow of Object.values(workflows)) workflow.webhookUrl = workflow.webhookUrl.replace(main.url, webhook.url);
		const workerLogs = Object.fromEntries(WORKERS.map((name) => [name, logOf(nameOf(name))])) as QueueModeAddress['workerLogs'];
		return { ...address, claimStoreDatabase, workflows, workerLogs };
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
