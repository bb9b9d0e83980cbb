import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** What the documents point at is there; where they point at a test, it bears the name that they give it. */

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

const fileOf = ({ document, target }: Reference) => path.join(ROOT, path.dirname(document), target.split('#')[0]);

test('the documents point at something', () => {
	expect(references.length).toBeGreaterThan(50);
});

test('every file that a document points at is there', () => {
	expect(references.filter((reference) => reference.target.split('#')[0] !== '' && !existsSync(fileOf(reference)))).toEqual([]);
});

test('every test that a document names is in the file that it points at', () => {
	const toTests = references.filter(({ target }) => target.endsWith('.test.ts'));
	const nameless = toTests.filter((reference) => {
		const titles = readFileSync(fileOf(reference), 'utf8').replace(/\\(['"`])/g, '$1');
		return !titles.includes(reference.text);
	});
	expect(nameless).toEqual([]);
});
