import { readFileSync } from 'node:fs';
import path from 'node:path';

/** A table of a page in docs/, found by the comment `<!-- table: name -->` before it: its header, and its rows without markup. */
export function documentedTable(page: string, name: string): { header: string[]; rows: string[][] } {
	const text = readFileSync(path.join(__dirname, '../../../docs', page), 'utf8');
	const [, after] = text.split(`<!-- table: ${name} -->\n`);
	if (after === undefined) throw new Error(`docs/${page} has no table "${name}"`);
	const lines = after.split('\n\n')[0].split('\n');
	const [header, , ...rows] = lines.map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim().replaceAll('`', '')));
	if (rows.length === 0) throw new Error(`The table "${name}" in docs/${page} is empty`);
	return { header, rows };
}
