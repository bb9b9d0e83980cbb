import { createTestDatabase } from '../../test/support/database';
import { makeUsed, type Contestant, type Kind } from '../contestant';
import { HandWritten } from '../handWritten';
import { number, spread, table, times } from '../markdown';
import { Ours } from '../ours';
import { perSecond, ratios, takeTurns, timeOf, type Round } from '../rounds';
import { atLeast, type Goal, type Section } from '../section';

const FULL = { rounds: 7, sizes: [1, 10, 100, 1000, 10_000], least: 500, present: 10_000 };
const QUICK = { rounds: 1, sizes: [1, 1000], least: 10, present: 1000 };

const TITLES: Readonly<Record<Kind, string>> = { new: 'New claims', duplicate: 'Duplicates, with their record', completed: 'Completions' };
/** For this size and kind there is a goal, as a multiple of the loop's rate. */
const ASKED = { kind: 'new', size: 1000, least: 15 };

/** Many items in one execution. */
export const section: Section = {
	name: 'batches',
	title: 'Many items in one execution',
	async measure(bench) {
		const { rounds, sizes, least, present } = bench.quick ? QUICK : FULL;
		const database = await createTestDatabase(bench.server);
		const [ours, byHand] = [Ours.open(database), await HandWritten.open(database)];
		await makeUsed(database, [ours, byHand], present);
		const blocks = [
			`Items in a second: the median over the rounds (${rounds}), and in brackets the slowest and the fastest. The store gets all items of an execution in one call; ` +
				`the loop by hand awaits a statement for each item, as in a Code node. Small executions are repeated until a round has ${number(least)} items. The tables have ${number(present)} completed claims when it begins.`,
		];
		const goals: Goal[] = [];
		for (const kind of ['new', 'duplicate', 'completed'] as const) {
			const rows: string[][] = [];
			for (const size of sizes) {
				bench.tell(`${TITLES[kind]}, ${size} items in one execution`);
				const count = size * Math.ceil(least / size);
				const roundOf = (contestant: Contestant): Round => async () => perSecond(count, await timeOf(await contestant.jobs(kind, count, size), 1));
				const rates = await takeTurns(rounds, { ours: roundOf(ours), byHand: roundOf(byHand) });
				const share = ratios(rates.ours, rates.byHand);
				rows.push([number(size), spread(rates.ours), spread(rates.byHand), spread(share, times)]);
				if (kind === ASKED.kind && size === ASKED.size) goals.push(atLeast(`${TITLES[kind]}, ${number(size)} items in one execution, against the loop by hand`, ASKED.least, share));
			}
			blocks.push(`### ${TITLES[kind]}`, table(['items', 'claim store', 'by hand', 'claim store ÷ by hand'], rows));
		}
		await ours.close();
		await byHand.close();
		await database.drop();
		return { blocks, goals };
	},
};
