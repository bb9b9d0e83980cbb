import { createTestDatabase } from '../../test/support/database';
import { CONNECTIONS, makeUsed, type Contestant, type Kind } from '../contestant';
import { HandWritten } from '../handWritten';
import { number, spread, table, times } from '../markdown';
import { Ours } from '../ours';
import { anOrder } from '../payload';
import { findPgbench, insertsPerSecond } from '../pgbench';
import { perSecond, ratios, takeTurns, timeOf, type Round } from '../rounds';
import { atLeast, type Bench, type Findings, type Goal, type Section } from '../section';

const AT_ONCE = [1, 16, 64];
const FULL = { rounds: 11, deliveries: 2000, present: 10_000 };
const QUICK = { rounds: 1, deliveries: 32, present: 200 };

interface Race {
	title: string;
	kind: Kind;
	/** Least rate that is asked for, as a multiple of the loop's. */
	least?: number;
}

const RACES: readonly Race[] = [
	{ title: 'New claims', kind: 'new', least: 0.95 },
	{ title: 'Duplicates, with their record', kind: 'duplicate', least: 0.9 },
	{ title: 'Completions', kind: 'completed' },
];

/** One delivery a call: what a webhook workflow does. */
export const section: Section = {
	name: 'store',
	title: 'The store, one delivery a call',
	async measure(bench) {
		const database = await createTestDatabase(bench.server);
		const plain = [Ours.open(database), await HandWritten.open(database)] as const;
		const withPayload = [Ours.open(database, anOrder), await HandWritten.open(database, anOrder)] as const;
		const { rounds, deliveries, present } = bench.quick ? QUICK : FULL;
		await makeUsed(database, [...plain, ...withPayload], present);
		const pgbench = await findPgbench();

		const findings: Findings[] = [];
		for (const race of RACES) {
			const alsoPgbench = race.kind === 'new' && pgbench ? async (atOnce: number) => await insertsPerSecond(bench, pgbench, database, Math.min(atOnce, CONNECTIONS), deliveries) : undefined;
			findings.push(await run(bench, race, plain, alsoPgbench));
		}
		findings.push(await run(bench, { title: 'New claims with a payload of 2 KB', kind: 'new', least: 0.8 }, withPayload));

		for (const contestant of [...plain, ...withPayload]) await contestant.close();
		await database.drop();
		return {
			blocks: [
				`Deliveries in a second: the median over the rounds (${rounds}, of ${number(deliveries)} deliveries each), and in brackets the slowest and the fastest. ` +
					`"By hand" is a loop with \`pg\` that inserts a key and a token (with the payload: a third column), reads the row on a conflict, and completes by an UPDATE of key and token. ` +
					`Both have ${CONNECTIONS} connections, and tables with ${number(present)} completed claims when it begins. The ratio is that of each round, then the median.`,
				pgbench
					? `${pgbench.version} sends the loop's INSERT over as many connections as are in use, at most ${CONNECTIONS}; its statements are parsed each time, like all others here.`
					: 'pgbench is not installed here, so its column is missing (Debian: `postgresql-contrib`).',
				...findings.flatMap(({ blocks }) => blocks),
			],
			goals: findings.flatMap(({ goals }) => goals),
		};
	},
};

async function run(bench: Bench, { title, kind, least }: Race, [ours, byHand]: readonly [Contestant, Contestant], pgbench?: (atOnce: number) => Promise<number>): Promise<Findings> {
	const { rounds, deliveries } = bench.quick ? QUICK : FULL;
	const rows: string[][] = [];
	const goals: Goal[] = [];
	for (const atOnce of AT_ONCE) {
		bench.tell(`${title}, ${atOnce} at once`);
		const roundOf = (contestant: Contestant): Round => async () => perSecond(deliveries, await timeOf(await contestant.jobs(kind, deliveries), atOnce));
		const rates = await takeTurns<'ours' | 'byHand' | 'pgbench'>(rounds, {
			ours: roundOf(ours),
			byHand: roundOf(byHand),
			pgbench: async () => (pgbench ? await pgbench(atOnce) : 0),
		});
		const share = ratios(rates.ours, rates.byHand);
		rows.push([String(atOnce), spread(rates.ours), spread(rates.byHand), ...(pgbench ? [spread(rates.pgbench)] : []), spread(share, times)]);
		if (least !== undefined) goals.push(atLeast(`${title}, ${atOnce} at once, against the loop by hand`, least, share));
	}
	return { blocks: [`### ${title}`, table(['at once', 'claim store', 'by hand', ...(pgbench ? ['pgbench'] : []), 'claim store ÷ by hand'], rows)], goals };
}
