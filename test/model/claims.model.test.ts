import fc from 'fast-check';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { TOLERANCE } from './comparison';
import { WHAT_A_CLAIM_DECIDES, WHAT_AN_OUTCOME_IS_ANSWERED } from './contract';
import { runHistory, type Coverage } from './history';
import { openLane, type Lane } from './lane';
import { histories, type HistoryStep } from './steps';

/**
 * Random histories on several stores and a real PostgreSQL, against a model that is the contract's two tables.
 *
 *   MODEL_HISTORIES=100000 npx jest test/model        more of them (2,000 by default)
 *   MODEL_SEED=… MODEL_PATH=… npx jest test/model     one that was found, as the failure says
 */

const HISTORIES = Number(process.env.MODEL_HISTORIES ?? 2000);
const SEED = Number(process.env.MODEL_SEED ?? Date.now() % 1_000_000_000);
const { MODEL_PATH } = process.env;
/** Histories that run at once: most of their time is waiting for the server. */
const LANES = MODEL_PATH ? 1 : Math.min(Number(process.env.MODEL_LANES ?? 8), HISTORIES);

jest.setTimeout(60_000 + HISTORIES * 1000);

let database: TestDatabase;
let lanes: Lane[];
beforeAll(async () => {
	database = await createTestDatabase();
	lanes = [];
	for (let lane = 0; lane < LANES; lane++) lanes.push(await openLane(database, `claims_${lane}`));
});
afterAll(async () => {
	await Promise.all(lanes.map(async (lane) => await lane.close()));
	await database.drop();
});

test(`${HISTORIES} random histories are answered as the contract's tables say`, async () => {
	const coverage: Coverage = new Map();
	let found = false;
	let run = 0;
	let foundAfter = 0;
	let disturbed = 0;
	const startedAt = Date.now();

	/** While the machine stands still, leases end and patience with it: a history that fails in such a time is run again. */
	const runInTime = async (lane: Lane, steps: HistoryStep[]): Promise<void> => {
		for (let time = 1; ; time++) {
			const began = performance.now();
			try {
				return await runHistory(lane, steps, coverage);
			} catch (failure) {
				if (performance.now() - began < TOLERANCE * 1000 || time === 3) throw failure;
				disturbed++;
			}
		}
	};

	/** The seed of each lane follows from the run's; a found one can be run alone. */
	const checkLane = async (lane: Lane, index: number): Promise<string | null> => {
		let isMine = false;
		const property = fc.asyncProperty(histories, async (steps: HistoryStep[]) => {
			if (found && !isMine) return;
			run++;
			try {
				await runInTime(lane, steps);
			} catch (failure) {
				if (!isMine) foundAfter = run;
				found = isMine = true;
				throw failure;
			}
			if (run % 5000 === 0) console.log(`${run} histories, ${Math.round((Date.now() - startedAt) / 1000)} s`);
		});
		const seed = SEED + index;
		const numRuns = Math.ceil(HISTORIES / LANES);
		const details = await fc.check(property, { seed, numRuns, path: MODEL_PATH });
		if (!details.failed) return null;
		const story = details.errorInstance instanceof Error ? details.errorInstance.message : String(details.errorInstance);
		return `After ${foundAfter} histories (${details.numShrinks} times shortened). Again: MODEL_SEED=${seed} MODEL_PATH=${details.counterexamplePath} npx jest test/model\n\n${story}`;
	};

	const failures = (await Promise.all(lanes.map(checkLane))).filter((failure) => failure !== null);
	console.log(`${run} histories, seed ${SEED}, ${LANES} at once, ${Math.round((Date.now() - startedAt) / 1000)} s, ${disturbed} run again because they took more than ${TOLERANCE} s\n${[...coverage].map(([row, count]) => `${String(count).padStart(8)} ${row}`).join('\n')}`);
	if (failures.length > 0) throw new Error(failures.join('\n\n'));

	// A row that no history comes to is a row that was not tested.
	const rows = [...WHAT_A_CLAIM_DECIDES, ...WHAT_AN_OUTCOME_IS_ANSWERED].map(({ words }) => words);
	if (!MODEL_PATH && HISTORIES >= 2000) expect(rows.filter((row) => !coverage.has(row))).toEqual([]);
});
