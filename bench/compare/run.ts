/**
 * `npm run compare`: what a real n8n does with copies of a delivery, and how fast it is, behind each of the guards that
 * somebody could choose. The results are Markdown on standard output; what is being done is said on standard error.
 */
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { freePorts } from '../../sandbox/ports';
import type { Progress } from '../../sandbox/progress';
import { startSandbox, type Sandbox } from '../../sandbox/sandbox';
import { rotated } from '../rounds';
import { describeSite } from '../server';
import type { GuardName } from './guards';
import { sendLoad, type Load, type Observation } from './load';
import { publishGuards, type Subject } from './place';
import { faultsOf, report } from './report';

const FULL = { rounds: 16, load: { copied: 2, copies: 20, paced: 80, atOnce: 8, again: 24 } };
const QUICK = { rounds: 1, load: { copied: 1, copies: 20, paced: 16, atOnce: 8, again: 8 } };

const USAGE = `npm run compare                        some minutes
npm run compare -- --quick             one round of little work: shows that it runs, the numbers say little
npm run compare -- --output FILE       writes the results to this file, too`;

const tell = (line: string) => console.error(`${String(Math.round(process.uptime())).padStart(5)} s  ${line}`);

const progress: Progress = {
	stage: async (title, work) => {
		tell(title);
		return await work(() => {});
	},
};

async function main(): Promise<number> {
	const { quick, output, help } = readArguments();
	if (help) {
		console.log(USAGE);
		return 0;
	}
	const cancel = new AbortController();
	for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => cancel.abort(new Error(`Stopped by ${signal}`)));
	const cancelled = new Promise<never>((_, reject) => cancel.signal.addEventListener('abort', () => reject(cancel.signal.reason as Error), { once: true }));
	// It may come before anybody waits for it.
	cancelled.catch(() => {});

	const folder = await mkdtemp(path.join(os.tmpdir(), 'idempotent-claim-compare-'));
	try {
		// Started by root, PostgreSQL runs as another user, who must get through this folder.
		await chmod(folder, 0o755);
		const sandbox = await startSandbox({ dataFolder: folder, ports: await freePorts(), progress, cancelSignal: cancel.signal });
		try {
			const lost = sandbox.lost.then(async () => {
				throw new Error(`n8n ended by itself. Its last words:\n${(await readFile(sandbox.logFile, 'utf8')).split('\n').slice(-20).join('\n')}`);
			});
			const comparison = compare(sandbox, folder, quick, cancel.signal);
			const { blocks, faults } = await Promise.race([comparison, cancelled, lost]);
			for (const block of blocks) console.log(`${block}\n`);
			if (output !== undefined) await writeFile(output, `${blocks.join('\n\n')}\n`);
			for (const fault of faults) console.error(`Went wrong: ${fault}`);
			return faults.length === 0 ? 0 : 1;
		} finally {
			tell('Stopping n8n, the destination and PostgreSQL');
			await sandbox.stop();
		}
	} finally {
		await rm(folder, { recursive: true, force: true });
	}
}

async function compare(sandbox: Sandbox, folder: string, quick: boolean, cancelSignal: AbortSignal): Promise<{ blocks: string[]; faults: string[] }> {
	const { rounds, load } = quick ? QUICK : FULL;
	const site = await describeSite({ server: sandbox.parts.postgres, folder, quick, tableSizes: undefined, cancelSignal, tell });
	tell('Publishing the guards');
	const subjects = await publishGuards(sandbox);
	const { observations, faults } = await takeRounds(subjects, sandbox, rounds, load, cancelSignal);
	return { blocks: ['# Guards compared in a real n8n', `${site}\n${await describeN8n(sandbox)}`, ...report(subjects, observations, load)], faults };
}

/**
 * Every guard in turns, each round in another order and every second one backwards, so that none always comes behind the same.
 * The round before the first does not count, but is no excuse for a fault.
 */
async function takeRounds(subjects: readonly Subject[], { destination }: Sandbox, rounds: number, load: Load, cancelSignal: AbortSignal) {
	const observations = new Map<GuardName, Observation[]>(subjects.map(({ name }) => [name, []]));
	const faults: string[] = [];
	for (let round = -1; round < rounds; round++) {
		tell(round < 0 ? 'A round to get warm' : `Round ${round + 1} of ${rounds}`);
		const order = rotated(subjects, round);
		for (const subject of round % 2 === 0 ? order : order.reverse()) {
			cancelSignal.throwIfAborted();
			const observation = await sendLoad(subject, destination, load);
			if (round >= 0) observations.get(subject.name)?.push(observation);
			if (subject.ours) faults.push(...faultsOf(subject.title, observation));
		}
	}
	return { observations, faults };
}

async function describeN8n({ parts: { installation } }: Sandbox): Promise<string> {
	const manifest = await readFile(path.join(path.dirname(installation.script), '..', 'package.json'), 'utf8');
	const { version } = JSON.parse(manifest) as { version: string };
	const { stdout: node } = await promisify(execFile)(installation.node, ['--version']);
	return [
		`- n8n ${version} on Node.js ${node.trim()}, one process, its own data in the same PostgreSQL server (10 connections); every execution is saved, as n8n does by default`,
		'- sender, destination, n8n and PostgreSQL share the machine; the action is an HTTP Request to the destination, which stores a row and answers',
		'- nodes and credentials have their defaults (Postgres credential: at most 100 connections, Claim Store credential: at most 10), both to the same database, without TLS',
		'- a copy that Remove Duplicates or Data Table drops reaches no Respond to Webhook node: n8n answers it by itself',
	].join('\n');
}

function readArguments() {
	try {
		const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false }, output: { type: 'string' }, help: { type: 'boolean', default: false } } });
		return values;
	} catch (error) {
		throw new Error(`${(error as Error).message}\n\n${USAGE}`);
	}
}

void main().then(
	// What other parts still wait for is not waited for.
	(status) => process.exit(status),
	(error: Error) => {
		console.error(error.message);
		process.exit(1);
	},
);
