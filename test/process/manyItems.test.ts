import type { INodeExecutionData } from 'n8n-workflow';
import type { FinishedRun } from '../support/engine';
import { claimNode, completeNode, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, RECORDED, STALE_CLAIM, Workbench, type Claim } from '../support/workbench';

/** Tens of thousands of items in one execution: each leaves with its own verdict, in its place, paired with what it came from. */

jest.setTimeout(300_000);

let workbench: Workbench;
beforeEach(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.close());

// Twenty thousand items at once may take longer than the engine tests' two seconds on a busy machine.
const credentials = () => ({ store: workbench.credential({ timeoutMs: 60_000 }) });

const items = (ids: string[]): INodeExecutionData[] => ids.map((id, place) => ({ json: { id, place } }));

interface Leaving {
	place: number;
	paired: unknown;
	status: string;
	deliveryId: string | null;
}

/** What left by an output; each item says where it stood in the input. */
function leaving(run: FinishedRun, output: number, node = 'Claim'): Leaving[] {
	return run.itemsOf(node, output).map(({ json, pairedItem }) => {
		const { status, deliveryId } = json.claim as unknown as Claim;
		return { place: json.place as number, paired: (pairedItem as { item: number }).item, status, deliveryId };
	});
}

/** As they should be: in input order, each with the verdict of its own delivery. */
const expected = (ids: string[], places: number[], status: string): Leaving[] => places.map((place) => ({ place, paired: place, status, deliveryId: ids[place] }));

/** Only the first difference: a failed comparison of tens of thousands of items would print them all. */
function firstDifference(actual: Leaving[], wanted: Leaving[]): unknown {
	const index = Array.from({ length: Math.max(actual.length, wanted.length) }, (_, place) => place).find((place) => JSON.stringify(actual[place]) !== JSON.stringify(wanted[place]));
	return index === undefined ? 'none' : { index, actual: actual[index], wanted: wanted[index] };
}

async function rowCount(): Promise<number> {
	return (await workbench.database.query<{ count: number }>('SELECT count(*)::int AS count FROM idempotent_claims'))[0].count;
}

test('20,000 items with 5,000 repeats: 15,000 new ones, 5,000 duplicates of theirs, and each completed once', async () => {
	const ids = Array.from({ length: 20_000 }, (_, place) => (place % 4 === 3 ? `d${place - 3}` : `d${place}`));
	const workflow = guarded(claimNode());
	workflow.nodes.Complete = completeNode({ outcomeReference: '={{ "done-" + $json.id }}' });
	workflow.lines = ['Start -> Claim', 'Claim -> Complete', 'Claim[1] -> Duplicate', 'Claim[2] -> Alarm', 'Complete -> Action'];
	const run = await workbench.run(workflow, { items: items(ids), credentials: credentials() });
	expect(run.error).toBeUndefined();

	const places = ids.map((_, place) => place);
	const first = places.filter((place) => place % 4 !== 3);
	expect(firstDifference(leaving(run, NEW_CLAIM), expected(ids, first, 'new'))).toBe('none');
	expect(firstDifference(leaving(run, KNOWN_DUPLICATE), expected(ids, places.filter((place) => place % 4 === 3), 'duplicate'))).toBe('none');
	expect(leaving(run, OPERATIONAL_ERROR)).toEqual([]);

	const recorded = run.outputOf('Complete', RECORDED).map((json) => [json.id, (json.claim as unknown as Claim).outcome?.reference]);
	expect(recorded.findIndex(([id, reference], index) => id !== ids[first[index]] || reference !== `done-${String(id)}`)).toBe(-1);
	expect(recorded).toHaveLength(15_000);
	expect([run.outputOf('Complete', STALE_CLAIM), run.outputOf('Complete', OPERATIONAL_ERROR)]).toEqual([[], []]);
	expect(await workbench.database.query(`SELECT count(*)::int AS count, count(*) FILTER (WHERE outcome_reference = 'done-' || delivery_id)::int AS completed FROM idempotent_claims`)).toEqual([
		{ count: 15_000, completed: 15_000 },
	]);
});

// More than the 65,535 parameters that PostgreSQL's protocol can number.
test('70,000 items, the last of them without an ID: 69,999 new ones and one error', async () => {
	const ids = Array.from({ length: 70_000 }, (_, place) => (place === 69_999 ? '' : `d${place}`));
	const run = await workbench.run(guarded(), { items: items(ids), credentials: credentials() });
	const places = ids.map((_, place) => place);
	expect(firstDifference(leaving(run, NEW_CLAIM), expected(ids, places.slice(0, -1), 'new'))).toBe('none');
	expect(leaving(run, OPERATIONAL_ERROR)).toEqual([{ place: 69_999, paired: 69_999, status: 'error', deliveryId: null }]);
	expect(await rowCount()).toBe(69_999);
});

test('1,000 copies of one delivery in one execution: the first is new', async () => {
	const ids = Array<string>(1000).fill('the same');
	const run = await workbench.run(guarded(), { items: items(ids), credentials: credentials() });
	const places = ids.map((_, place) => place);
	expect(leaving(run, NEW_CLAIM)).toEqual(expected(ids, [0], 'new'));
	expect(firstDifference(leaving(run, KNOWN_DUPLICATE), expected(ids, places.slice(1), 'duplicate'))).toBe('none');
	expect(await rowCount()).toBe(1);
});
