import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

/** The benchmark runs, whatever its numbers are: on a machine that also runs tests they say nothing. */

// About 20 seconds; several times that beside other work.
jest.setTimeout(180_000);

const ROOT = path.join(__dirname, '../..');
const bench = async (...args: string[]) => await promisify(execFile)('npm', ['run', '--silent', 'bench', '--', ...args], { cwd: ROOT });

let folder: string;
beforeAll(async () => {
	folder = await mkdtemp(path.join(os.tmpdir(), 'idempotent-claim-quick-bench-'));
	// The server may run as another user, who must get through this folder.
	await chmod(folder, 0o755);
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

const TITLES = [
	'The store, one delivery a call',
	'Many items in one execution',
	'The size of the table',
	'Hot key: all copies of one delivery at once',
	'Memory and sockets',
	'What the nodes add to the store',
];

/** The rows of all tables in a piece of Markdown, without their heads. */
function rowsOf(markdown: string): string[][] {
	const lines = markdown.split('\n').filter((line) => line.startsWith('|'));
	const heads = lines.flatMap((line, place) => (/^\| ---/.test(line) ? [place - 1, place] : []));
	return lines.filter((_, place) => !heads.includes(place)).map((line) => line.slice(2, -2).split(' | '));
}

test('a quick run measures every section, compares with the goals, and leaves nothing behind', async () => {
	const { stdout } = await bench('--quick', '--folder', folder, '--output', path.join(folder, 'results.md'));
	const [head, ...sections] = stdout.split(/^## /m);
	expect(head).toContain('`fsync = on`');
	expect(sections.map((section) => section.split('\n')[0])).toEqual([...TITLES, 'Goals']);
	expect(stdout).not.toMatch(/NaN|Infinity|undefined/);
	for (const section of sections) {
		const rows = rowsOf(section);
		expect(rows.length).toBeGreaterThanOrEqual(3);
		expect(rows.filter((cells) => !cells.slice(1).some((cell) => /\d/.test(cell)))).toEqual([]);
	}

	const goals = rowsOf(sections[sections.length - 1]);
	expect(goals.map(([goal]) => goal)).toEqual(expect.arrayContaining([expect.stringContaining('64 at once'), expect.stringContaining('payload'), expect.stringContaining('1,000 items'), expect.stringContaining('recovery poll'), expect.stringContaining('winners'), expect.stringContaining('node adds')]));
	expect(goals.filter(([, , , verdict]) => verdict !== 'held' && verdict !== 'missed')).toEqual([]);

	expect((await readFile(path.join(folder, 'results.md'), 'utf8')).trim()).toBe(stdout.trim());
	expect(await readdir(folder)).toEqual(['results.md']);
});

test('a section that is not there is refused, with the names of those that are', async () => {
	await expect(bench('speed')).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/no section "speed"[\s\S]*hotkey/) as string });
});
