import { inShort } from '../../test/store/support/claims';
import { createTestDatabase } from '../../test/support/database';
import { countBy, inWords } from '../../test/support/counting';
import { CONNECTIONS, makeUsed } from '../contestant';
import { HandWritten } from '../handWritten';
import { number, spread, table, times } from '../markdown';
import { anExecution, Ours } from '../ours';
import { ratios, takeTurns, timeOf } from '../rounds';
import { atMost, type Section } from '../section';

const FULL = { rounds: 15, copies: 1000, present: 10_000 };
const QUICK = { rounds: 1, copies: 100, present: 200 };

/** One delivery that comes many times at once. */
export const section: Section = {
	name: 'hotkey',
	title: 'Hot key: all copies of one delivery at once',
	async measure(bench) {
		const { rounds, copies, present } = bench.quick ? QUICK : FULL;
		bench.tell(`${copies} copies of one delivery at once`);
		const database = await createTestDatabase(bench.server);
		const [ours, byHand] = [Ours.open(database), await HandWritten.open(database)];
		await makeUsed(database, [ours, byHand], present);

		/** Milliseconds until all have their answer. @throws Error unless one of them is new and all others are duplicates */
		const rush = async (who: string, claims: Array<() => Promise<string>>): Promise<number> => {
			const answers: string[] = [];
			const time = await timeOf(claims.map((claim) => async () => void answers.push(await claim())), copies);
			const kinds = countBy(answers, (answer) => answer.split(' ')[0]);
			if (kinds.new !== 1 || kinds.duplicate !== copies - 1) throw new Error(`${who}: ${copies} copies of one delivery are ${inWords(countBy(answers))}, instead of 1 new and ${copies - 1} duplicates`);
			return time;
		};
		const answerTimes = await takeTurns(rounds, {
			ours: async () => {
				const [{ identity }] = ours.deliver(1);
				const requests = ours.deliver(copies).map((request) => ({ owner: anExecution(), request: { ...request, identity } }));
				return await rush('The store', requests.map(({ owner, request }) => async () => inShort((await ours.store.claim('claim', owner, [request]))[0])));
			},
			byHand: async () => {
				const [{ id }] = byHand.deliver(1);
				return await rush('By hand', byHand.deliver(copies).map((delivery) => async () => await byHand.claim({ ...delivery, id })));
			},
		});
		await ours.close();
		await byHand.close();
		await database.drop();

		const share = ratios(answerTimes.ours, answerTimes.byHand);
		return {
			blocks: [
				`${number(copies)} copies of one delivery, each an execution of its own, at the same moment in one process, over ${CONNECTIONS} connections. ` +
					`Milliseconds until the last copy has its answer: the median over the rounds (${rounds}), and in brackets the fastest and the slowest.`,
				table(
					['', 'winners', 'last answer (ms)'],
					[
						['claim store', '1 in each round', spread(answerTimes.ours)],
						['by hand', '1 in each round', spread(answerTimes.byHand)],
						['claim store ÷ by hand', '', spread(share, times)],
					],
				),
			],
			goals: [
				// Another number would have ended the section.
				{ what: `${number(copies)} copies of one delivery: winners`, asked: '1', measured: '1', held: true },
				atMost(`${number(copies)} copies of one delivery: time to the last answer, against the loop by hand`, 3, share),
			],
		};
	},
};
