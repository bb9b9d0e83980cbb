import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Pool } from 'pg';
import { ensureDatabase } from '../../sandbox/databases';
import { DestinationClient, startDestination } from '../../sandbox/destination';
import type { N8nInstallation } from '../../sandbox/install';
import { startN8n } from '../../sandbox/n8n';
import { installIntoN8n } from '../../sandbox/packedPackage';
import { freePorts } from '../../sandbox/ports';
import { startPostgresApart } from '../../sandbox/postgresProcess';
import { N8nRest } from '../../sandbox/rest';
import { LOGIN } from '../../sandbox/settings';
import { storeSettings, type Named } from '../../sandbox/setup';
import { openStoreLine, type StoreLine } from '../../sandbox/storeLine';

/** A fresh n8n with the package and one credential in it, and what is around it. */
export interface Site {
	rest: N8nRest;
	credential: Named & { type: string; data: Record<string, unknown> };
	/** Straight to the claim store's database, past the line that can be cut. */
	claimStore: Pool;
	storeLine: StoreLine;
	destinationUrl: string;
	destination: DestinationClient;
}

/** Starts it all, has it used, and stops it all. Where n8n does not start, its log is kept, and the error says where. */
export async function withSite(installation: N8nInstallation, archive: string, use: (site: Site) => Promise<void>): Promise<void> {
	const folder = await mkdtemp(path.join(os.tmpdir(), 'n8n-compat-site-'));
	// Started by root, PostgreSQL runs as another user, who must get through this folder.
	await chmod(folder, 0o755);
	const stops: Array<() => Promise<unknown>> = [];
	try {
		await use(await startSite(folder, installation, archive, stops));
	} finally {
		for (const stop of stops.reverse()) await stop();
	}
	await rm(folder, { recursive: true });
}

async function startSite(folder: string, installation: N8nInstallation, archive: string, stops: Array<() => Promise<unknown>>): Promise<Site> {
	const ports = await freePorts();
	const postgres = await startPostgresApart({ dataFolder: path.join(folder, 'postgres'), port: ports.postgres });
	stops.push(postgres.stop);
	const store = await ensureDatabase(postgres, 'claim_store');
	const claimStore = new Pool(store);
	claimStore.on('error', () => {});
	stops.push(async () => await claimStore.end());
	const storeLine = await openStoreLine(ports.claimStore, ports.postgres);
	stops.push(storeLine.cut);
	const destination = await startDestination(ports.destination, await ensureDatabase(postgres, 'crm'));
	stops.push(destination.stop);

	const n8nFolder = path.join(folder, 'n8n');
	await installIntoN8n(archive, n8nFolder);
	// An n8n does not start if it is to leave out a module that it does not know, as what the sandbox leaves out; this one is in all that have modules.
	const settings = { N8N_DISABLED_MODULES: 'insights' };
	const n8n = await startN8n({ installation, folder: n8nFolder, database: await ensureDatabase(postgres, 'n8n'), ports, logFile: path.join(folder, 'n8n.log'), settings });
	stops.push(async () => await n8n.stop());

	const rest = new N8nRest(`http://127.0.0.1:${ports.n8n}`);
	await rest.signIn(LOGIN);
	const type = 'claimStoreApi';
	const data = storeSettings({ ...store, port: ports.claimStore }, 'idempotent_claims');
	// The oldest versions also want to be told which nodes may use it.
	const saved = await rest.post<Named>('/rest/credentials', { name: 'Claim Store', type, data, nodesAccess: [] });
	const credential = { id: saved.id, name: saved.name, type, data };
	return { rest, credential, claimStore, storeLine, destinationUrl: destination.url, destination: new DestinationClient(destination.url) };
}
