import { rm } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { demonstrate } from './demonstration';
import { portsFromEnvironment } from './ports';
import { createProgress } from './progress';
import { printDemonstration } from './report';
import { SANDBOX_STAGES, startSandbox, type Sandbox } from './sandbox';
import { signed } from './sender';
import { DATA_FOLDER, OPERATOR } from './settings';

const USAGE = `npm start                 n8n with the package in it, the demonstration, then n8n stays up until Ctrl-C
npm start -- --once       ends after the demonstration; exit status 0 only if every row held
npm start -- --reset      begins anew: deletes the sandbox's data, not the n8n download`;

async function main(): Promise<number> {
	const { once, reset, help } = readArguments();
	if (help) {
		console.log(USAGE);
		return 0;
	}
	const cancel = new AbortController();
	for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
		process.on(signal, () => cancel.abort(new Error(`Stopped by ${signal}`)));
	}
	const cancelled = new Promise<void>((resolve) => cancel.signal.addEventListener('abort', () => resolve(), { once: true }));

	if (reset) await rm(DATA_FOLDER, { recursive: true, force: true });
	const progress = createProgress(SANDBOX_STAGES + 1);
	const sandbox = await startSandbox({
		dataFolder: DATA_FOLDER,
		ports: portsFromEnvironment(process.env),
		progress,
		cancelSignal: cancel.signal,
	});
	try {
		if (!once) printWayIn(sandbox);
		const demonstration = demonstrate(sandbox, progress, cancel.signal);
		const rows = await Promise.race([demonstration, cancelled]);
		if (!rows) return 1;
		printDemonstration(rows);
		const held = rows.every((row) => row.held);
		if (once) return held ? 0 : 1;

		printWayIn(sandbox);
		console.log('\nn8n stays up. Ctrl-C stops everything.');
		const ending = await Promise.race([cancelled.then(() => 'cancelled'), sandbox.lost.then(() => 'lost')]);
		if (ending === 'lost') throw new Error(`n8n ended by itself. See ${sandbox.logFile}`);
		return 0;
	} finally {
		console.log('\nStopping n8n, the destination and PostgreSQL …');
		await sandbox.stop();
		console.log('Stopped. The data stays in sandbox/.data for the next start.');
	}
}

function readArguments() {
	try {
		const { values } = parseArgs({ options: { once: { type: 'boolean' }, reset: { type: 'boolean' }, help: { type: 'boolean' } } });
		return values;
	} catch (error) {
		throw new Error(`${(error as Error).message}\n\n${USAGE}`);
	}
}

function printWayIn({ n8nUrl, login, workflows, destinationUrl, claimStoreDatabase: store }: Sandbox): void {
	const { name, id, webhookUrl } = workflows['guarded-webhook'];
	const { body, headers } = signed({ id: 'evt_1', type: 'lead.created', lead: { email: 'lead@example.com', name: 'Example Lead' } });
	const withHeaders = Object.entries(headers).map(([name, value]) => `-H '${name}: ${value}'`).join(' ');
	console.log(`
Editor       ${n8nUrl}
             ${login.email}, password ${login.password}
Workflow     ${name}: ${n8nUrl}/workflow/${id}
Desk         ${workflows['operator-desk'].webhookUrl}
             ${OPERATOR.user}, password ${OPERATOR.password}
Leads        ${destinationUrl}/leads
Claim store  postgresql://${store.user}:${store.password}@${store.host}:${store.port}/${store.database}, table idempotent_claims

A signed delivery to try, as often as you like (one ID, one lead):

  curl -i -X POST ${webhookUrl} ${withHeaders} -d '${body}'`);
}

main().then(
	(status) => process.exit(status),
	(error: Error) => {
		console.error(`\n${error.message}`);
		process.exit(1);
	},
);
