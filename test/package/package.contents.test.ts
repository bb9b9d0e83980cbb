import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { ICredentialType, INodeTypeDescription } from 'n8n-workflow';

/**
 * What people get: the packed package, installed the way n8n does it and by hand, loaded by n8n's own loader.
 * The package is built and packed from a copy of the repository, so that nobody else's dist/ is touched or trusted.
 * Both installations fetch `pg` from the npm registry.
 */

const run = promisify(execFile);
const repository = path.resolve(__dirname, '../..');
const NAME = 'n8n-nodes-idempotent-claim';
const INSTALL_TIMEOUT = 180_000;
const MAX_OUTPUT = 64 * 1024 ** 2;

interface Manifest {
	name: string;
	dependencies?: Record<string, string>;
	optionalDependencies?: Record<string, string>;
	scripts?: Record<string, string>;
	n8n?: { nodes: string[]; credentials: string[] };
}

interface LoadedPackage {
	nodes: INodeTypeDescription[];
	credentials: ICredentialType[];
	/** The file that the package's nodes get for `require('n8n-workflow')`, and the one that n8n itself has. */
	workflowModule: string;
	workflowModuleOfN8n: string;
}

let folder: string;
let tarball: string;

beforeAll(async () => {
	folder = await mkdtemp(path.join(os.tmpdir(), 'idempotent-claim-package-'));
	const copy = path.join(folder, 'repository');
	await copyRepository(copy);
	await npm(copy, 'run', 'build');
	const { stdout } = await npm(copy, 'pack', '--json', '--pack-destination', folder);
	const [{ filename }] = JSON.parse(stdout) as Array<{ filename: string }>;
	tarball = path.join(folder, filename);
}, INSTALL_TIMEOUT);

afterAll(async () => {
	await rm(folder, { recursive: true, force: true });
});

describe('the packed package', () => {
	it('holds the compiled sources, icons, codex files, SQL, README and LICENSE, and nothing else', async () => {
		const sources = (await Promise.all(['credentials', 'nodes', 'providers', 'store'].map(filesBelow))).flat();
		const expected = [
			...sources.map((file) => path.join('dist', file.replace(/\.ts$/, '.js'))),
			'LICENSE',
			'README.md',
			'index.js',
			'package.json',
		];

		const { stdout } = await run('tar', ['-tzf', tarball]);
		const packed = stdout.trim().split('\n').map((file) => file.replace(/^package\//, ''));

		expect(packed.sort()).toEqual(expected.sort());
	});

	it('names in its manifest only files that it holds', async () => {
		const unpacked = await unpack(path.join(folder, 'unpacked'));
		const { n8n } = await readManifest(unpacked);

		expect(n8n?.nodes).not.toHaveLength(0);
		expect(n8n?.credentials).not.toHaveLength(0);
		for (const file of [...(n8n?.nodes ?? []), ...(n8n?.credentials ?? [])]) {
			await expect(readFile(path.join(unpacked, file), 'utf8')).resolves.not.toBe('');
		}
	});
});

describe.each([
	['as n8n installs community packages', installAsN8n],
	['by a plain npm install', installPlainly],
])('installed %s', (_way, install) => {
	let installed: Installation;

	beforeAll(async () => {
		installed = await install();
	}, INSTALL_TIMEOUT);

	it('brings pg and what pg needs, and nothing else: no n8n-workflow of its own', async () => {
		const { dependencies } = await readManifest(installed.packageFolder);
		expect(Object.keys(dependencies ?? {})).toEqual(['pg']);

		const { packages, needed } = await installedAndNeeded(installed);
		expect([...packages.keys()].sort()).toEqual([...needed].sort());
		expect(needed).not.toContain('n8n-workflow');
	});

	it('needs no build: no native code, no install scripts', async () => {
		const files = await readdir(installed.folder, { recursive: true });
		expect(files.filter((file) => /\.node$|binding\.gyp$/.test(file))).toEqual([]);

		const { packages } = await installedAndNeeded(installed);
		const withInstallScript = [...packages.values(), await readManifest(installed.packageFolder)].filter(
			({ scripts = {} }) => scripts.preinstall ?? scripts.install ?? scripts.postinstall,
		);
		expect(withInstallScript).toEqual([]);
	});

	describe("and loaded by n8n's loader", () => {
		let loaded: LoadedPackage;

		beforeAll(async () => {
			const loader = path.join(__dirname, 'loadAsN8n.cjs');
			// Without NODE_ENV, which jest sets to `test`: n8n would load classes in another way than in production.
			const env = { ...process.env, NODE_ENV: undefined, N8N_USER_FOLDER: path.join(folder, 'n8n') };
			const { stdout } = await run(process.execPath, [loader, installed.packageFolder], { env, maxBuffer: MAX_OUTPUT });
			loaded = JSON.parse(stdout) as LoadedPackage;
		});

		it("uses n8n's own n8n-workflow", () => {
			expect(loaded.workflowModule).toBe(loaded.workflowModuleOfN8n);
		});

		it.each([
			['idempotentClaim', 'Idempotent Claim', ['New Claim', 'Known Duplicate', 'Operational Error']],
			['completeClaim', 'Complete Claim', ['Recorded', 'Stale Claim', 'Operational Error']],
		])('%s has its name and outputs', (name, displayName, outputNames) => {
			const node = nodeNamed(name);
			expect(node.displayName).toBe(displayName);
			expect(node.inputs).toEqual(['main']);
			expect(node.outputs).toEqual(['main', 'main', 'main']);
			expect(node.outputNames).toEqual(outputNames);
			expect(node.credentials).toEqual([expect.objectContaining({ name: 'claimStoreApi', required: true })]);
		});

		it('claimRecoveryTrigger has its name and outputs, and is asked at the times that a person chooses', () => {
			const node = nodeNamed('claimRecoveryTrigger');
			expect(node.displayName).toBe('Claim Recovery Trigger');
			expect(node.inputs).toEqual([]);
			expect(node.outputs).toEqual(['main', 'main']);
			expect(node.outputNames).toEqual(['Ready to Run', 'Reconcile First']);
			expect(node.credentials).toEqual([expect.objectContaining({ name: 'claimStoreApi', required: true })]);
			expect(node.properties.map(({ name }) => name)).toContain('pollTimes');
		});

		it('claimStore has its name and one output, and agents can use it', () => {
			const node = nodeNamed('claimStore');
			expect(node.displayName).toBe('Claim Store');
			expect(node.inputs).toEqual(['main']);
			expect(node.outputs).toEqual(['main']);
			expect(node.credentials).toEqual([expect.objectContaining({ name: 'claimStoreApi', required: true })]);
			expect(node.usableAsTool).toBe(true);
		});

		it.each(['idempotentClaim', 'completeClaim', 'claimRecoveryTrigger', 'claimStore'])('%s is found by the words that people search for', (name) => {
			const { codex } = nodeNamed(name);
			expect(codex?.alias).toEqual(expect.arrayContaining(['idempotent', 'duplicate', 'webhook retry', 'postgres']));
			expect(codex?.categories).not.toHaveLength(0);
		});

		it('has the credential with its name', () => {
			expect(loaded.credentials.map(({ name }) => name)).toEqual(['claimStoreApi']);
			expect(loaded.credentials[0].displayName).toBe('Claim Store (Postgres) API');
		});

		it('has a light and a dark icon for each node and the credential', async () => {
			for (const { iconUrl } of [...loaded.nodes, ...loaded.credentials]) {
				const { light, dark } = iconUrl as { light: string; dark: string };
				expect(light).not.toBe(dark);
				for (const url of [light, dark]) {
					// n8n serves icons/<package>/<file> from the package's folder.
					const file = path.join(installed.packageFolder, path.relative(path.join('icons', NAME), url));
					await expect(readFile(file, 'utf8')).resolves.toContain('<svg');
				}
			}
		});

		function nodeNamed(name: string): INodeTypeDescription {
			const node = loaded.nodes.find((candidate) => candidate.name === name);
			if (!node) throw new Error(`n8n's loader did not find the node ${name}`);
			return node;
		}
	});
});

interface Installation {
	/** Everything that the installation wrote is below this folder. */
	folder: string;
	packageFolder: string;
}

/** What n8n 2.41 does with a package name that is typed into its settings (`CommunityPackagesService.downloadPackage`). */
async function installAsN8n(): Promise<Installation> {
	const nodesFolder = path.join(folder, 'as-n8n', 'nodes');
	const packageFolder = await unpack(path.join(nodesFolder, 'node_modules', NAME));
	const { devDependencies, peerDependencies, optionalDependencies, ...manifest } = (await readManifest(
		packageFolder,
	)) as Manifest & Record<string, unknown>;
	await writeFile(path.join(packageFolder, 'package.json'), JSON.stringify(manifest, null, 2));
	await npm(
		packageFolder,
		'install',
		'--audit=false',
		'--fund=false',
		'--bin-links=false',
		'--install-strategy=shallow',
		'--ignore-scripts=true',
		'--package-lock=false',
	);
	return { folder: nodesFolder, packageFolder };
}

async function installPlainly(): Promise<Installation> {
	const nodesFolder = path.join(folder, 'plainly', 'nodes');
	await mkdir(nodesFolder, { recursive: true });
	await writeFile(path.join(nodesFolder, 'package.json'), JSON.stringify({ name: 'installed-nodes', private: true }));
	// Scripts may run here, as they would for a person who has not forbidden them.
	await npm(nodesFolder, 'install', '--ignore-scripts=false', tarball);
	return { folder: nodesFolder, packageFolder: path.join(nodesFolder, 'node_modules', NAME) };
}

/** The packages that came along with ours, at any depth, and the names that pg and its dependencies ask for. */
async function installedAndNeeded(installation: Installation) {
	const packages = new Map<string, Manifest>();
	for (const file of await readdir(installation.folder, { recursive: true })) {
		const [, name] = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\/package\.json$/.exec(file) ?? [];
		if (name && name !== NAME) packages.set(name, await readManifest(path.dirname(path.join(installation.folder, file))));
	}

	const needed = new Set(['pg']);
	for (const name of needed) {
		const { dependencies, optionalDependencies } = packages.get(name) ?? {};
		for (const dependency of Object.keys({ ...dependencies, ...optionalDependencies })) needed.add(dependency);
	}
	return { packages, needed };
}

/** All that is in the repository, so that the packing itself has to leave out what does not belong. */
async function copyRepository(to: string): Promise<void> {
	const left = new Set(['.git', '.data', 'coverage', 'dist', 'node_modules']);
	await cp(repository, to, { recursive: true, filter: (file) => !left.has(path.basename(file)) });
	await symlink(path.join(repository, 'node_modules'), path.join(to, 'node_modules'));
}

async function filesBelow(part: string): Promise<string[]> {
	const entries = await readdir(path.join(repository, part), { recursive: true, withFileTypes: true });
	return entries
		.filter((entry) => entry.isFile())
		.map((entry) => path.relative(repository, path.join(entry.parentPath, entry.name)));
}

async function unpack(to: string): Promise<string> {
	await mkdir(to, { recursive: true });
	await run('tar', ['-xzf', tarball, '-C', to, '--strip-components=1']);
	return to;
}

async function readManifest(packageFolder: string): Promise<Manifest> {
	return JSON.parse(await readFile(path.join(packageFolder, 'package.json'), 'utf8')) as Manifest;
}

async function npm(cwd: string, ...args: string[]) {
	return await run('npm', args, { cwd, maxBuffer: MAX_OUTPUT });
}
