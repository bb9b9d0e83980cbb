import type { ResultPromise } from 'execa';
import { createWriteStream } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Database } from './databases';
import type { N8nInstallation } from './install';
import type { Ports } from './settings';

/** What a process of n8n is for: everything, or, in queue mode, one part of it. */
export type N8nCommand = 'start' | 'worker' | 'webhook';

/** What it prints once it does its work; the first one's workflows are active then. */
const READY_LINES: Record<N8nCommand, string> = { start: 'Editor is now accessible', worker: 'n8n worker is now ready', webhook: 'Webhook listener waiting for requests' };
const PACKAGE_FAILED = 'Failed to load package';
const SECONDS_TO_STOP = 15;

export interface N8nOptions {
	installation: N8nInstallation;
	/** n8n's user folder: its settings, and the community packages. */
	folder: string;
	database: Database;
	ports: Pick<Ports, 'n8n' | 'runnerBroker'>;
	/** `start` unless said otherwise. */
	command?: N8nCommand;
	/** Environment variables beside those that every n8n here has. */
	settings?: Record<string, string>;
	/** n8n's own output is appended to it. */
	logFile: string;
	cancelSignal?: AbortSignal;
}

export interface RunningN8n {
	readonly pid: number;
	/** Resolves when n8n has ended, for whatever reason. */
	readonly ended: Promise<unknown>;
	/** Ends n8n and its task runners at once, with no chance to tidy up. */
	kill(): Promise<void>;
	/** Lets n8n shut down, then makes sure that it and its task runners are gone. */
	stop(): Promise<void>;
}

/** @throws Error with n8n's last words when it ends before it is ready. */
export async function startN8n(options: N8nOptions): Promise<RunningN8n> {
	const { installation, logFile, command = 'start' } = options;
	// execa is an ES module: from CommonJS only import() gets hold of it.
	const { execa } = await import('execa');
	await mkdir(options.folder, { recursive: true });
	const subprocess = execa(installation.node, [installation.script, command], {
		env: environment(options),
		extendEnv: false,
		// A process group of its own: the task runners end with n8n, and Ctrl-C reaches only us.
		detached: true,
		cleanup: false,
		reject: false,
		stdin: 'ignore',
		all: true,
		buffer: false,
	});
	const log = createWriteStream(logFile, { flags: 'a' });
	subprocess.all.pipe(log);
	const n8n: RunningN8n = {
		pid: subprocess.pid as number,
		ended: subprocess,
		async kill() {
			signalGroup(n8n.pid, 'SIGKILL');
			await subprocess;
		},
		async stop() {
			subprocess.kill('SIGTERM');
			const timer = setTimeout(() => signalGroup(n8n.pid, 'SIGKILL'), SECONDS_TO_STOP * 1000);
			await subprocess;
			clearTimeout(timer);
			signalGroup(n8n.pid, 'SIGKILL');
		},
	};
	// Should this program break off without stopping n8n, n8n goes with it.
	const endWithUs = () => signalGroup(n8n.pid, 'SIGKILL');
	process.once('exit', endWithUs);
	void subprocess.finally(() => process.off('exit', endWithUs));
	try {
		await whenReady(subprocess, READY_LINES[command], options);
	} catch (error) {
		await n8n.kill();
		throw error;
	}
	return n8n;
}

async function whenReady(subprocess: ResultPromise, readyLine: string, { logFile, cancelSignal }: N8nOptions): Promise<void> {
	const listening = new AbortController();
	await new Promise<void>((resolve, reject) => {
		cancelSignal?.addEventListener('abort', () => reject(cancelSignal.reason as Error), { signal: listening.signal });
		let printed = '';
		subprocess.all?.on('data', (chunk: Buffer) => {
			printed = (printed + chunk.toString('utf8')).slice(-2000);
			if (printed.includes(readyLine)) resolve();
			if (printed.includes(PACKAGE_FAILED)) reject(new Error(`n8n could not load the package. See ${logFile}`));
		});
		void subprocess.then(async () => {
			const lastWords = (await readFile(logFile, 'utf8')).split('\n').slice(-20).join('\n');
			reject(new Error(`n8n ended before it was ready. The end of ${logFile}:\n${lastWords}`));
		});
	}).finally(() => listening.abort());
}

function environment({ installation, folder, database, ports, settings }: N8nOptions): NodeJS.ProcessEnv {
	const { HOME, LANG, TZ, TMPDIR, PATH } = process.env;
	return {
		HOME,
		LANG,
		TZ,
		TMPDIR,
		// n8n starts its task runners as plain `node`.
		PATH: `${path.dirname(installation.node)}${path.delimiter}${PATH}`,
		NODE_ENV: 'production',
		N8N_USER_FOLDER: folder,
		N8N_LISTEN_ADDRESS: '127.0.0.1',
		N8N_HOST: '127.0.0.1',
		N8N_PORT: String(ports.n8n),
		N8N_SECURE_COOKIE: 'false',
		N8N_RUNNERS_BROKER_LISTEN_ADDRESS: '127.0.0.1',
		N8N_RUNNERS_BROKER_PORT: String(ports.runnerBroker),
		DB_TYPE: 'postgresdb',
		DB_POSTGRESDB_HOST: database.host,
		DB_POSTGRESDB_PORT: String(database.port),
		DB_POSTGRESDB_DATABASE: database.database,
		DB_POSTGRESDB_USER: database.user,
		DB_POSTGRESDB_PASSWORD: database.password,
		// With its two connections n8n takes its busy database for a lost one, and answers 503 before any workflow runs.
		DB_POSTGRESDB_POOL_SIZE: '10',
		DB_PING_TIMEOUT_MS: '30000',
		DB_POSTGRESDB_CONNECTION_TIMEOUT: '60000',
		N8N_UNVERIFIED_PACKAGES_ENABLED: 'true',
		// Nothing in the sandbox speaks to the outside.
		N8N_DIAGNOSTICS_ENABLED: 'false',
		N8N_VERSION_NOTIFICATIONS_ENABLED: 'false',
		N8N_VERSION_NOTIFICATIONS_WHATS_NEW_ENABLED: 'false',
		N8N_DYNAMIC_BANNERS_ENABLED: 'false',
		N8N_TEMPLATES_ENABLED: 'false',
		N8N_VERIFIED_PACKAGES_ENABLED: 'false',
		N8N_LICENSE_AUTO_RENEW_ENABLED: 'false',
		N8N_HIRING_BANNER_ENABLED: 'false',
		N8N_PERSONALIZATION_ENABLED: 'false',
		N8N_DISABLED_MODULES: 'mcp-registry',
		...settings,
	};
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
	try {
		process.kill(-pid, signal);
	} catch (error) {
		// The whole group is gone already.
		if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
	}
}
