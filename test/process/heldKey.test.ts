import type { IDataObject } from 'n8n-workflow';
import { claimNode, claimsOf, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, Workbench, type Claim } from '../support/workbench';
import { sessions, until } from './support/sessions';

/** Somebody's open transaction holds one key (an operator who left psql open): who is hindered by it, and for how long. */

jest.setTimeout(120_000);

let workbench: Workbench;
beforeEach(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.close());

const CREDENTIAL: IDataObject = { maxConnections: 5, timeoutMs: 3000 };

async function deliver(...ids: string[]): Promise<Claim[]> {
	const run = await workbench.run(guarded(claimNode()), { items: deliveries(...ids), credentials: { store: workbench.credential(CREDENTIAL) } });
	return [NEW_CLAIM, KNOWN_DUPLICATE, OPERATIONAL_ERROR].flatMap((output) => claimsOf(run, 'Claim', output));
}

/** Inserts a delivery's claim as another program would, without committing. */
async function hold(id: string): Promise<Awaited<ReturnType<Workbench['transaction']>>> {
	await deliver('pattern');
	const holder = await workbench.transaction();
	await holder.query(
		`INSERT INTO idempotent_claims SELECT (jsonb_populate_record(claim, '{"delivery_id": "${id}", "owner_token": "of the holder"}')).* FROM idempotent_claims AS claim WHERE delivery_id = 'pattern'`,
	);
	return holder;
}

const BUSY = { status: 'error', handle: null, responseCode: 503, error: { kind: 'store_busy', sqlState: '55P03', retryable: true } };

test.each(['before', 'after', 'among'])('20 deliveries of a held key and 20 of others, each in an execution of its own, with five connections (%s): the others are new', async (when) => {
	const holder = await hold('held');
	const same = () => Array.from({ length: 20 }, async () => await deliver('held'));
	const others = () => Array.from({ length: 20 }, async (_, index) => await deliver(`other-${index}`));
	let hindered: Array<Promise<Claim[]>>;
	let free: Array<Promise<Claim[]>>;
	if (when === 'before') {
		hindered = same();
		await until('the held key is waited for', 20, async () => (await sessions(workbench.database, `wait_event_type = 'Lock'`)) > 0);
		free = others();
	} else if (when === 'after') {
		free = others();
		hindered = same();
	} else {
		const mixed = Array.from({ length: 20 }, (_, index) => [deliver('held'), deliver(`other-${index}`)]);
		hindered = mixed.map(([one]) => one);
		free = mixed.map(([, one]) => one);
	}

	expect((await Promise.all(free)).flat().map(({ status, error }) => error?.message ?? status)).toEqual(Array<string>(20).fill('new'));
	// Not one of them was answered by its neighbours' end: the key is still held.
	expect((await Promise.all(hindered)).flat()).toMatchObject(Array(20).fill(BUSY));
	await holder.rollBack();
	expect(await deliver('held')).toMatchObject([{ status: 'new', reason: 'first_delivery' }]);
	expect(await workbench.rows()).toHaveLength(22);
});

test('the holder commits while they wait: they are its duplicates', async () => {
	const holder = await hold('held');
	const waiting = Array.from({ length: 20 }, async () => await deliver('held'));
	await until('the held key is waited for', 20, async () => (await sessions(workbench.database, `wait_event_type = 'Lock'`)) > 0);
	await holder.query('COMMIT');
	expect((await Promise.all(waiting)).flat()).toMatchObject(Array(20).fill({ status: 'duplicate', reason: 'in_progress' }));
	await holder.rollBack();
});

test('the holder rolls back while they wait: one of them is new', async () => {
	const holder = await hold('held');
	const waiting = Array.from({ length: 20 }, async () => await deliver('held'));
	await until('the held key is waited for', 20, async () => (await sessions(workbench.database, `wait_event_type = 'Lock'`)) > 0);
	await holder.rollBack();
	const answers = (await Promise.all(waiting)).flat().map(({ status, reason }) => `${status} ${reason}`);
	expect(answers.sort()).toEqual([...Array<string>(19).fill('duplicate in_progress'), 'new first_delivery']);
});

test('in one execution of 600 items only the held ones are busy', async () => {
	const holder = await hold('held');
	const ids = Array.from({ length: 600 }, (_, index) => (index === 250 || index === 599 ? 'held' : `item-${index}`));
	const answers = await deliver(...ids);
	expect(answers.filter(({ status }) => status === 'new')).toHaveLength(598);
	expect(answers.filter(({ status }) => status === 'error')).toMatchObject([BUSY, BUSY]);
	await holder.rollBack();
	expect(await workbench.rows()).toHaveLength(599);
});
