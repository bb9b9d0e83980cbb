/**
 * `npm run test:versions`: the tests that send SQL, on each older PostgreSQL that the package supports, one after the
 * other. `npm run test:versions -- 13 16` takes these versions only; what begins with a dash goes to jest.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.join(__dirname, '../../..');
const { dependencies } = JSON.parse(readFileSync(path.join(__dirname, 'package.json'), 'utf8')) as { dependencies: Record<string, string> };
const ALL = Object.keys(dependencies).map((name) => name.replace('postgres-', ''));

function run(command: string, args: string[], folder: string, variables: Record<string, string> = {}): boolean {
	const { status, error } = spawnSync(command, args, { cwd: folder, stdio: 'inherit', env: { ...process.env, ...variables } });
	if (error) throw error;
	return status === 0;
}

const args = process.argv.slice(2);
const versions = args.filter((arg) => !arg.startsWith('-'));
for (const version of versions) {
	if (!ALL.includes(version)) throw new Error(`There is no server of version ${version} here: choose from ${ALL.join(', ')}`);
}

// Not `npm ci`: it wants every platform's package in the lock file, and some versions are there for some platforms only.
if (ALL.some((version) => !existsSync(path.join(__dirname, 'node_modules', `postgres-${version}`)))) {
	if (!run('npm', ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], __dirname)) process.exit(1);
}
let good = true;
for (const version of versions.length > 0 ? versions : ALL) {
	console.log(`\nPostgreSQL ${version}`);
	const jest = [require.resolve('jest/bin/jest'), '-c', path.join(__dirname, 'jest.config.js'), ...args.filter((arg) => arg.startsWith('-'))];
	good = run(process.execPath, jest, ROOT, { TEST_POSTGRES: version }) && good;
}
process.exitCode = good ? 0 : 1;
