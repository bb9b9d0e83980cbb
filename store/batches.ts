/**
 * Cuts what is to be done into statements: each names an identity at most once, in one order for all processes (so
 * that two batches do not wait for each other), and none grows beyond a bound.
 */

/** Items per statement at the most. */
const MAX_ITEMS = 500;
/** Characters of payload and other large texts per statement, about. */
const MAX_CHARACTERS = 4 * 1024 * 1024;

/** First occurrences, then second ones, and so on: within a wave each key stands once, and waves keep input order. */
export function waves<T>(items: readonly T[], key: (item: T) => string): T[][] {
	const result: T[][] = [];
	const seen = new Map<string, number>();
	for (const item of items) {
		const wave = seen.get(key(item)) ?? 0;
		seen.set(key(item), wave + 1);
		(result[wave] ??= []).push(item);
	}
	return result;
}

/** One wave in statements' portions, ordered by key. */
export function portions<T>(wave: readonly T[], key: (item: T) => string, characters: (item: T) => number): T[][] {
	const keyed = wave.map((item) => ({ item, key: key(item) })).sort((a, b) => (a.key < b.key ? -1 : 1));
	const result: T[][] = [];
	let size = Infinity;
	for (const { item } of keyed) {
		const portion = result.at(-1);
		if (portion === undefined || portion.length === MAX_ITEMS || size + characters(item) > MAX_CHARACTERS) {
			result.push([item]);
			size = characters(item);
		} else {
			portion.push(item);
			size += characters(item);
		}
	}
	return result;
}

/** Runs `work` on every item, at most `limit` at a time, and gives the results in order. */
export async function mapLimited<T, R>(items: readonly T[], limit: number, work: (item: T) => Promise<R>): Promise<R[]> {
	const results = new Array<R>(items.length);
	let next = 0;
	const worker = async () => {
		while (next < items.length) {
			const index = next++;
			results[index] = await work(items[index]);
		}
	};
	await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
	return results;
}
