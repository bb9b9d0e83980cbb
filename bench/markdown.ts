import { median } from './rounds';

/** A table whose first column is text and whose others are numbers. */
export function table(heads: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
	const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
	return [line(heads), line(heads.map((_, column) => (column === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}

/** A count as it is; what was measured with as many digits as mean something: three, but no fraction of a large number. */
export function number(value: number): string {
	const digits = Number.isInteger(value) ? 0 : Math.min(3, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value)))));
	return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** The median, and from where to where the rounds went. */
export function spread(values: readonly number[], format: (value: number) => string = number): string {
	return `${format(median(values))} (${format(Math.min(...values))} to ${format(Math.max(...values))})`;
}

/** How many times another number. */
export function times(value: number): string {
	return value < 10 ? value.toFixed(2) : value.toFixed(1);
}

/** Bytes in a unit that people read. */
export function bytes(value: number): string {
	const units = ['B', 'kB', 'MB', 'GB'];
	const power = Math.min(units.length - 1, value < 1 ? 0 : Math.floor(Math.log10(value) / 3));
	return `${number(value / 1000 ** power)} ${units[power]}`;
}
