/**
 * `npm run bench`: how fast the store and its nodes are, against the least that could do the job. The results are
 * Markdown on standard output; what is being measured is said on standard error.
 */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { table } from './markdown';
import type { Bench, Goal, Section } from './section';
import { describeSite, withServer } from './server';

/** In the order in which they are measured; each is a file of `sections/`. n8n's engine comes last: it fills the heap. */
const SECTIONS = ['store', 'batches', 'size', 'hotkey', 'memory', 'node'];

const USAGE = `npm run bench                          every section
npm run bench -- store hotkey          these only: ${SECTIONS.join(', ')}
npm run bench -- --quick               few rounds of little work: shows that it runs, the numbers say nothing
npm run bench -- --output FILE         writes the results to this file, too
npm run bench -- size --rows 1e4,1e6   tables of these sizes
npm run bench -- --folder FOLDER       keeps the server's data in this folder's file system while it runs`;

async function main(): Promise<number> {
	const { sections, quick, output, tableSizes, folder, help } = readArguments();
	if (help) {
		console.log(USAGE);
		return 0;
	}
	const cancel = new AbortController();
	for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => cancel.abort(new Error(`Stopped by ${signal}`)));
	const cancelled = new Promise<never>((_, reject) => cancel.signal.addEventListener('abort', () => reject(cancel.signal.reason as Error), { once: true }));
	// It may come before anybody waits for it.
	cancelled.catch(() => {});

	const written: string[] = [];
	const write = (...blocks: string[]) => {
		written.push(...blocks);
		for (const block of blocks) console.log(`${block}\n`);
	};
	const sound = await withServer(folder, async (place) => {
		// For n8n's engine, which a section loads later: it writes its key into a folder, and reports what is none of the results.
		Object.assign(process.env, { N8N_USER_FOLDER: path.join(place.folder, 'n8n'), N8N_ENCRYPTION_KEY: 'bench-only', N8N_LOG_LEVEL: 'silent' });
		const bench: Bench = { ...place, quick, tableSizes, cancelSignal: cancel.signal, tell: (line) => console.error(`${String(Math.round(process.uptime())).padStart(5)} s  ${line}`) };
		return await Promise.race([measure(sections, bench, write), cancelled]);
	});
	if (output !== undefined) await writeFile(output, `${written.join('\n\n')}\n`);
	return sound ? 0 : 1;
}

/** @returns whether all went well; a goal that is missed is no fault */
async function measure(names: readonly string[], bench: Bench, write: (...blocks: string[]) => void): Promise<boolean> {
	write('# Benchmark', await describeSite(bench));
	const goals: Goal[] = [];
	const faults: string[] = [];
	for (const name of names) {
		const section = await load(name);
		write(`## ${section.title}`);
		try {
			const findings = await section.measure(bench);
			write(...findings.blocks);
			goals.push(...findings.goals);
		} catch (error) {
			if (bench.cancelSignal.aborted) throw error;
			const fault = `${section.title}: ${(error as Error).message}`;
			faults.push(fault);
			write(`**Went wrong.** ${fault}`);
			console.error((error as Error).stack);
		}
	}
	if (goals.length > 0) {
		write('## Goals', table(['goal', 'asked', 'measured', ''], goals.map(({ what, asked, measured, held }) => [what, asked, measured, held ? 'held' : 'missed'])));
	}
	for (const fault of faults) console.error(`Went wrong: ${fault}`);
	return faults.length === 0;
}

/** By the whole name of its file, and not before its turn. */
async function load(name: string): Promise<Section> {
	return ((await import(path.join(__dirname, 'sections', `${name}.ts`))) as { section: Section }).section;
}

function readArguments() {
	try {
		const { values, positionals } = parseArgs({
			allowPositionals: true,
			options: { quick: { type: 'boolean', default: false }, output: { type: 'string' }, rows: { type: 'string' }, folder: { type: 'string' }, help: { type: 'boolean', default: false } },
		});
		for (const name of positionals) {
			if (!SECTIONS.includes(name)) throw new Error(`There is no section "${name}"`);
		}
		const sections = SECTIONS.filter((name) => positionals.length === 0 || positionals.includes(name));
		return { ...values, sections, tableSizes: values.rows?.split(',').map(readRows) };
	} catch (error) {
		throw new Error(`${(error as Error).message}\n\n${USAGE}`);
	}
}

/** The smallest table that all samples can be taken from. */
const LEAST_ROWS = 1000;

function readRows(text: string): number {
	const rows = Number(text);
	if (!Number.isSafeInteger(rows) || rows < LEAST_ROWS) throw new Error(`"${text}" is not a number of rows, at least ${LEAST_ROWS}`);
	return rows;
}

void main().then(
	// What other parts still wait for is not waited for.
	(status) => process.exit(status),
	(error: Error) => {
		console.error(error.message);
		process.exit(1);
	},
);
