import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** What the documents point at is there, headings too; where they point at a test by its name, that name is in the file. */

const ROOT = path.join(__dirname, '../..');
const inFolder = (folder: string) => readdirSync(path.join(ROOT, folder), { recursive: true }).map((name) => path.join(folder, String(name)));
const documents = [...readdirSync(ROOT), ...inFolder('docs'), ...inFolder('test').filter((name) => !name.includes('node_modules'))].filter((name) => name.endsWith('.md'));

interface Reference {
	document: string;
	text: string;
	target: string;
}

const references = documents.flatMap((document): Reference[] => {
	const links = readFileSync(path.join(ROOT, document), 'utf8').matchAll(/\[((?:[^\]\\]|\\.)+)\]\(([^)\s]+)\)/g);
	return [...links].map(([, text, target]) => ({ document, text: text.replace(/\\(.)/g, '$1'), target })).filter(({ target }) => !/^[a-z]+:/.test(target));
});

const fileOf = ({ document, target }: Reference) => path.join(ROOT, target.startsWith('#') ? document : path.join(path.dirname(document), target.split('#')[0]));

test('the documents point at something', () => {
	expect(references.length).toBeGreaterThan(50);
});

test('every file that a document points at is there', () => {
	expect(references.filter((reference) => !existsSync(fileOf(reference)))).toEqual([]);
});

/** As GitHub makes them of headings: in small letters, without marks, with a dash for each space. */
const anchorsOf = (file: string) => [...readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replace(/ /g, '-'));

test('every heading that a document points at is there', () => {
	const toHeadings = references.filter(({ target }) => target.includes('#'));
	expect(toHeadings.length).toBeGreaterThan(20);
	expect(toHeadings.filter((reference) => !anchorsOf(fileOf(reference)).includes(reference.target.split('#')[1]))).toEqual([]);
});

test('every script of package.json that a document or a workflow runs is there', () => {
	const { scripts } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
	const texts = [...documents, ...inFolder('.github').filter((name) => name.endsWith('.yml')), '.ci/run'].map((name) => readFileSync(path.join(ROOT, name), 'utf8'));
	const run = new Set(texts.flatMap((text) => [...text.matchAll(/npm run (?:--silent )?([a-z][a-z0-9:]*)/g)].map(([, name]) => name)));
	expect([...run].sort()).toEqual(expect.arrayContaining(['build', 'lint', 'test:e2e', 'typecheck']));
	expect([...run].filter((name) => !(name in scripts))).toEqual([]);
});

test('every test that a document names is in the file that it points at', () => {
	const toTests = references.filter(({ target, text }) => target.endsWith('.test.ts') && !text.startsWith('`'));
	const nameless = toTests.filter((reference) => {
		const titles = readFileSync(fileOf(reference), 'utf8').replace(/\\(['"`])/g, '$1');
		return !titles.includes(reference.text);
	});
	expect(nameless).toEqual([]);
});
