/** Measures contestants in turns, and says what is typical of many numbers and how far they lie apart. */

/** One thing that a user would do, as one call; throws when the answer is not the one that it should be. */
export type Job = () => Promise<void>;

/** Makes ready, does one round of work, and says how it went: a number in the unit of whoever asks. */
export type Round = () => Promise<number>;

/**
 * The rounds of all contestants in turns, so that what the machine does meanwhile hits each of them; every time another
 * one begins. A first round of each does not count: it opens connections, and the code gets compiled.
 *
 * @returns of each contestant one number a round, in order
 */
export async function takeTurns<Name extends string>(rounds: number, contestants: Readonly<Record<Name, Round>>): Promise<Record<Name, number[]>> {
	const names = Object.keys(contestants) as Name[];
	const results = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, number[]>;
	for (let round = -1; round < rounds; round++) {
		for (const name of rotated(names, round)) {
			const result = await contestants[name]();
			if (round >= 0) results[name].push(result);
		}
	}
	return results;
}

/** The same items, beginning with another one at each round. */
export function rotated<Item>(items: readonly Item[], round: number): Item[] {
	const start = ((round % items.length) + items.length) % items.length;
	return [...items.slice(start), ...items.slice(0, start)];
}

/** Milliseconds until the last of the jobs is done, at most `atOnce` of them at a time. What was thrown away before is cleared away first. */
export async function timeOf(jobs: readonly Job[], atOnce: number): Promise<number> {
	globalThis.gc?.();
	let next = 0;
	const worker = async () => {
		while (next < jobs.length) await jobs[next++]();
	};
	const begun = performance.now();
	await Promise.all(Array.from({ length: atOnce }, worker));
	return performance.now() - begun;
}

/** How many of `count` are done in a second when all of them take so many milliseconds. */
export function perSecond(count: number, milliseconds: number): number {
	return (count / milliseconds) * 1000;
}

/** The smallest number that `percent` of all are not above. */
export function percentile(values: readonly number[], percent: number): number {
	if (values.length === 0) throw new Error('There is no percentile of nothing');
	const sorted = [...values].sort((a, b) => a - b);
	return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)];
}

export function median(values: readonly number[]): number {
	const sorted = [...values].sort((a, b) => a - b);
	const middle = sorted.length / 2;
	return Number.isInteger(middle) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[Math.floor(middle)];
}

/** One number for each round, made of what two contestants did in that same round: so a slow minute of the machine counts for both. */
export function roundByRound(ours: readonly number[], others: readonly number[], of: (our: number, other: number) => number): number[] {
	return ours.map((our, round) => of(our, others[round]));
}

/** In each round, ours as a multiple of the others'. */
export function ratios(ours: readonly number[], others: readonly number[]): number[] {
	return roundByRound(ours, others, (our, other) => our / other);
}
