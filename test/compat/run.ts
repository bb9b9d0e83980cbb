/**
 * `npm run compat`: the package as a user meets it, in several versions of n8n and of Node.js, one after the other;
 * a table in Markdown at the end. `npm run compat -- 2.0.3@22` takes this n8n on that Node.js only; `--keep` leaves
 * what was installed (about 3 GB for each n8n) for the next run.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { packPackage } from '../../sandbox/packedPackage';
import { CHECKS } from './checks';
import { COMBINATIONS, readCombination, type Combination } from './combinations';
import { install, removeN8n } from './installations';
import { withSite } from './site';

type Verdict = 'yes' | 'no' | 'not measured';

async function main(args: string[]): Promise<void> {
	const chosen = args.filter((arg) => arg !== '--keep').map(readCombination);
	const folder = await mkdtemp(path.join(os.tmpdir(), 'n8n-compat-package-'));
	const archive = await packPackage(folder);
	const rows: string[] = [];
	for (const combination of chosen.length > 0 ? chosen : COMBINATIONS) {
		const name = `n8n ${combination.n8n} on Node.js ${combination.node}`;
		console.log(name);
		const verdicts = await measure(combination, archive);
		rows.push(`| ${[combination.n8n, combination.node, ...verdicts].join(' | ')} |`);
		if (verdicts.some((verdict) => verdict !== 'yes')) process.exitCode = 1;
		if (!args.includes('--keep')) await removeN8n(combination);
	}
	await rm(folder, { recursive: true });
	const heads = ['n8n', 'Node.js', ...CHECKS.map(({ title }) => title)];
	console.log([`\n| ${heads.join(' | ')} |`, `|${' --- |'.repeat(heads.length)}`, ...rows].join('\n'));
}

/** One for each check, in their order. What could not be installed says nothing about the package. */
async function measure(combination: Combination, archive: string): Promise<Verdict[]> {
	const verdicts = new Map<string, Verdict>();
	let otherwise: Verdict = 'not measured';
	try {
		const installation = await install(combination);
		console.log('  is installed');
		otherwise = 'no';
		await withSite(installation, archive, async (site) => {
			for (const { title, holds } of CHECKS) {
				const problem = await holds(site).then(() => null, (error: Error) => error.message);
				verdicts.set(title, problem === null ? 'yes' : 'no');
				if (problem !== null) console.log(`  ${title}: ${problem}`);
			}
		});
	} catch (error) {
		console.log(`  ${(error as Error).message}`);
	}
	return CHECKS.map(({ title }) => verdicts.get(title) ?? otherwise);
}

void main(process.argv.slice(2));
