import { openClaimStore, type ClaimStore } from '../../store/claimStore';
import { settingsFor } from '../../test/store/support/claims';
import { createTestDatabase, type TestDatabase } from '../../test/support/database';
import { fillTable, sizeOf, type TableSize } from '../fill';
import { bytes, number, table, times } from '../markdown';
import { median, percentile, takeTurns, timeOf } from '../rounds';
import { noSamples, POLL_LIMIT, takeSamples, WHAT, type Subject, type What } from '../samples';
import { atMost, type Bench, type Goal, type Section } from '../section';

/** In every so many turns there is a poll, and a purge. */
const FULL = { tableSizes: [10_000, 1_000_000, 10_000_000], turns: 2000, turnsPerPoll: 20, turnsPerPurge: 100 };
const QUICK = { tableSizes: [1000, 4000], turns: 20, turnsPerPoll: 5, turnsPerPurge: 10 };
const MOST_PER_PURGE = 100;
/** A purge takes at most this part of the smallest table: some 40 of them, and half of the table in between, must find enough in the three quarters that are past their retention. */
const LARGEST_PART = 1 / 100;
/** More than the credential offers: what is slow is to be measured, not to fail. */
const TIMEOUT_MS = 60_000;
/** Claims in one call of the purge that makes the dead rows. */
const BIG_PURGE = 100_000;
const EMPTY_PURGES = 5;
const SUMMARIES = 3;

const TITLES: Readonly<Record<What, string>> = { new: 'new claim', duplicate: 'duplicate', complete: 'completion', poll: 'recovery poll', purge: 'purge batch' };
/** What has a goal: how much the median may take in the largest table, as a multiple of the smallest's. */
const WITH_GOAL: readonly What[] = ['new', 'duplicate', 'complete', 'poll'];
const MOST_GROWTH = 1.3;

/** What becomes slower as the table grows. */
export const section: Section = {
	name: 'size',
	title: 'The size of the table',
	async measure(bench) {
		const plan = bench.quick ? QUICK : FULL;
		const tableSizes = [...(bench.tableSizes ?? plan.tableSizes)].sort((a, b) => a - b);
		const purgeLimit = Math.min(MOST_PER_PURGE, Math.floor(tableSizes[0] * LARGEST_PART));
		const database = await createTestDatabase(bench.server);
		const subjects: Subject[] = [];
		for (const rows of tableSizes) {
			bench.tell(`Filling a table with ${number(rows)} claims`);
			const name = `claims_${rows}`;
			await fillTable(database, name, rows);
			subjects.push({ name, rows, store: openClaimStore(settingsFor(database, { table: name, timeoutMs: TIMEOUT_MS })), nextRow: rows + 1, samples: noSamples(), purgeLimit });
		}
		const sizes = async () => await Promise.all(subjects.map(async ({ name }) => await sizeOf(database, name)));
		const full = await sizes();
		bench.tell('Samples of the full tables');
		await takeSamples(database, subjects, plan);
		const latencies = latencyTable(subjects);
		const goals = goalsOf(subjects);
		bench.tell('Counting all claims');
		const summaries = await medianTimes(SUMMARIES, subjects, async (store) => await store.summarize());
		const purgeTimes = await purgeHalf(bench, subjects);
		const purged = await sizes();
		bench.tell('Samples of the tables after a purge');
		await takeSamples(database, subjects, plan);
		const purgedLatencies = latencyTable(subjects);
		const emptyPurges = await timeEmptyPurges(bench, database, subjects);
		for (const { store } of subjects) await store.close();
		await database.drop();

		return {
			blocks: [
				`Tables of ${tableSizes.map(number).join(', ')} claims in one database, with ${number(plan.turns)} claims, duplicates and completions of each, one at a time and in turns; ` +
					`${number(plan.turns / plan.turnsPerPoll)} recovery polls of ${POLL_LIMIT} and ${number(plan.turns / plan.turnsPerPurge)} purges of ${purgeLimit} among them. ` +
					`Of 1,000 claims 985 are completed; IDs are random. Before each poll ${POLL_LIMIT} claims are added that are due, so that there is always something to find. Autovacuum is off for these tables.`,
				'### Milliseconds',
				'The median, and in brackets the 99th percentile.',
				latencies,
				`A summary, which reads the whole table, takes: ${subjects.map(({ rows }, place) => `of ${number(rows)}, ${number(summaries[place])} ms`).join('; ')}.`,
				'### Milliseconds with the dead rows of a purge',
				`Half of each table purged by the store: ${subjects.map(({ rows }, place) => `of ${number(rows)} in ${number(purgeTimes[place])} s`).join(', ')}. The dead rows stay until the table is vacuumed, which it is not here.`,
				purgedLatencies,
				`When everything past its retention is gone, and the table vacuumed, a purge that finds nothing takes: ${subjects.map(({ rows }, place) => `of what is left of ${number(rows)}, ${number(emptyPurges[place])} ms`).join('; ')}.`,
				'### Bytes a claim',
				'After the fill. The key is as full as keys in random order leave it, 70 %.',
				sizeTable(tableSizes, full),
				'After the purge, for each claim that is left.',
				sizeTable(tableSizes, purged),
			],
			goals,
		};
	},
};

/** @returns seconds that it took, in the order of the tables */
async function purgeHalf(bench: Bench, subjects: readonly Subject[]): Promise<number[]> {
	const seconds: number[] = [];
	for (const { store, rows, samples, purgeLimit } of subjects) {
		bench.tell(`Purging half of ${number(rows)} claims`);
		const begun = performance.now();
		const count = Math.floor(rows / 2) - samples.purge.length * purgeLimit;
		if ((await purge(store, count)) < count) throw new Error('A purge ended before its time');
		seconds.push((performance.now() - begun) / 1000);
	}
	return seconds;
}

/** @returns how many claims went, at most so many */
async function purge(store: ClaimStore, most: number): Promise<number> {
	let gone = 0;
	while (gone < most) {
		const limit = Math.min(most - gone, BIG_PURGE);
		const { live } = await store.purge({ what: 'pastRetention', limit }, false);
		gone += live;
		if (live < limit) break;
	}
	return gone;
}

/** What the housekeeping of most days does: looks for claims past their retention, and finds none. @returns milliseconds, in the order of the tables */
async function timeEmptyPurges(bench: Bench, database: TestDatabase, subjects: readonly Subject[]): Promise<number[]> {
	for (const { name, store, rows } of subjects) {
		bench.tell(`Purging all that is past its retention of ${number(rows)} claims`);
		await purge(store, Infinity);
		await database.query(`VACUUM (ANALYZE) ${name}`);
	}
	return await medianTimes(EMPTY_PURGES, subjects, async (store) => await purge(store, 1));
}

/** @returns milliseconds, in the order of the tables */
async function medianTimes(rounds: number, subjects: readonly Subject[], job: (store: ClaimStore) => Promise<unknown>): Promise<number[]> {
	const took = await takeTurns(rounds, Object.fromEntries(subjects.map(({ name, store }) => [name, async () => await timeOf([async () => void (await job(store))], 1)])));
	return subjects.map(({ name }) => median(took[name]));
}

function latencyTable(subjects: readonly Subject[]): string {
	return table(
		['', ...subjects.map(({ rows }) => number(rows)), 'last ÷ first'],
		WHAT.map((what) => [TITLES[what], ...subjects.map(({ samples }) => `${number(median(samples[what]))} (${number(percentile(samples[what], 99))})`), times(growth(subjects, what))]),
	);
}

/** The median in the largest table, as a multiple of the smallest's. */
function growth(subjects: readonly Subject[], what: What): number {
	return median(subjects[subjects.length - 1].samples[what]) / median(subjects[0].samples[what]);
}

function goalsOf(subjects: readonly Subject[]): Goal[] {
	const [first, last] = [subjects[0], subjects[subjects.length - 1]];
	return WITH_GOAL.map((what) => atMost(`Median of a ${TITLES[what]} at ${number(last.rows)} rows, against ${number(first.rows)}`, MOST_GROWTH, [growth(subjects, what)]));
}

function sizeTable(tableSizes: readonly number[], sizes: readonly TableSize[]): string {
	const row = (what: string, of: (size: TableSize) => number) => [what, ...sizes.map((size) => number(of(size) / size.rows))];
	const indexes = [...sizes[0].indexes.keys()];
	const all = (size: TableSize) => [...size.indexes.values()].reduce((sum, bytes) => sum + bytes, size.table);
	return table(
		['', ...tableSizes.map(number)],
		[row('table', (size) => size.table), ...indexes.map((columns) => row(`index of ${columns}`, (size) => size.indexes.get(columns) ?? 0)), row('all', all), ['all, in the database', ...sizes.map((size) => bytes(all(size)))]],
	);
}
