import { createHash } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { PACKAGE_FOLDER } from './settings';

/** Builds the package and packs it as for publication. Returns the archive's path. */
export async function packPackage(toFolder: string, cancelSignal?: AbortSignal): Promise<string> {
	// execa is an ES module: from CommonJS only import() gets hold of it.
	const { execa } = await import('execa');
	await mkdir(toFolder, { recursive: true });
	await execa('npm', ['run', '--silent', 'build'], { cwd: PACKAGE_FOLDER, cancelSignal, all: true, stdin: 'ignore' });
	const { stdout } = await execa('npm', ['pack', '--json', '--pack-destination', toFolder], { cwd: PACKAGE_FOLDER, cancelSignal, stdin: 'ignore' });
	const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
	return path.join(toFolder, filename);
}

/**
 * Installs a packed package into n8n's own folder, as n8n itself installs community packages:
 * unpacked, its development and peer dependencies stripped, its dependencies installed inside it.
 * Returns false, with nothing done, when this very archive is installed already.
 */
export async function installIntoN8n(archive: string, n8nFolder: string, cancelSignal?: AbortSignal): Promise<boolean> {
	const { name } = await readManifest(PACKAGE_FOLDER);
	const target = path.join(n8nFolder, '.n8n', 'nodes', 'node_modules', name);
	const stamp = path.join(n8nFolder, `${name}.installed-from`);
	const wanted = createHash('sha256').update(await readFile(archive)).digest('hex');
	if ((await readFile(stamp, 'utf8').catch(() => '')) === wanted) return false;

	const { execa } = await import('execa');
	await rm(stamp, { force: true });
	await rm(target, { recursive: true, force: true });
	await mkdir(target, { recursive: true });
	await execa('tar', ['-xzf', archive, '-C', target, '--strip-components=1'], { cancelSignal });

	const { devDependencies: _dev, peerDependencies: _peer, optionalDependencies: _optional, ...manifest } = await readManifest(target);
	await writeFile(path.join(target, 'package.json'), JSON.stringify(manifest, null, 2));
	const asN8nDoes = ['--audit=false', '--fund=false', '--bin-links=false', '--install-strategy=shallow', '--ignore-scripts=true', '--package-lock=false'];
	await execa('npm', ['install', ...asN8nDoes], { cwd: target, cancelSignal, all: true, stdin: 'ignore' });

	await writeFile(stamp, wanted);
	return true;
}

async function readManifest(folder: string): Promise<{ name: string } & Record<string, unknown>> {
	return JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8')) as { name: string };
}
