import type { Proxy } from '../support/proxy';
import { LEASE_OVER } from '../support/timePassed';
import type { Workbench } from '../support/workbench';
import { BREAKS } from './support/breaks';
import { claim, claimInPeace, complete, openRig, type Credential } from './support/rig';

/**
 * The line to PostgreSQL breaks once, at each step of each statement that the nodes send. It is mended at once, so
 * the answer must be what it would have been without the fault; and nothing is done twice.
 */

let workbench: Workbench;
let proxy: Proxy;
let store: Credential;
let close: () => Promise<void>;

beforeAll(async () => {
	({ workbench, proxy, store, close } = await openRig(1000));
});
afterEach(async () => {
	proxy.forgetOrders();
	await workbench.clear();
});
afterAll(async () => await close());

describe.each(Object.entries(BREAKS))('%s', (_name, breakAt) => {
	/** Breaks the line at that statement, and sees to it that this really happened. */
	async function during<T>(statement: string, work: () => Promise<T>): Promise<T> {
		// A connection that is open already, past the look at the table.
		expect(await claim(workbench, store, ['warm-up'])).toEqual(['new']);
		const lines = proxy.accepted;
		const broken = breakAt(proxy, statement);
		const [result] = await Promise.all([work(), broken.happened]);
		// What had no answer went with its line: it is not there for the next statement to meet.
		expect(proxy.accepted).toBe(lines + 1);
		expect(await claim(workbench, store, ['afterwards'])).toEqual(['new']);
		expect(proxy.accepted).toBe(lines + 1);
		return result;
	}

	test.each(['INSERT INTO', 'JOIN "'])('of three deliveries, the second one known (%s): each its right verdict, one row each', async (statement) => {
		await claimInPeace(workbench, 'known');
		expect(await during(statement, async () => await claim(workbench, store, ['a', 'known', 'b']))).toEqual(['new', 'duplicate in_progress', 'new']);
		for (const id of ['a', 'known', 'b']) expect(await workbench.row(id)).toMatchObject({ state: 'processing', version: 1, attempt: 1 });
	});

	test('of a takeover: taken over once', async () => {
		await claimInPeace(workbench, 'old', { options: { whenLeaseExpires: 'takeOver' } });
		await workbench.change('old', LEASE_OVER);
		expect(await during('UPDATE "', async () => await claim(workbench, store, ['old']))).toEqual(['new']);
		expect(await workbench.row('old')).toMatchObject({ state: 'processing', version: 2, attempt: 2 });
	});

	test('of an ended lease: noted once', async () => {
		await claimInPeace(workbench, 'old');
		await workbench.change('old', LEASE_OVER);
		expect(await during('UPDATE "', async () => await claim(workbench, store, ['old']))).toEqual(['duplicate outcome_uncertain']);
		expect((await workbench.row('old')).history).toHaveLength(2);
	});

	test('of an outcome: recorded once', async () => {
		const handle = await claimInPeace(workbench, 'acted');
		expect(await during('UPDATE "', async () => await complete(workbench, store, handle, 'lead-1'))).toBe('recorded');
		const row = await workbench.row('acted');
		expect(row).toMatchObject({ state: 'completed', outcome_reference: 'lead-1' });
		expect(row.history).toHaveLength(2);
	});

	test('of a stale outcome: said, and its reference noted once', async () => {
		const handle = await claimInPeace(workbench, 'replaced');
		await workbench.change('replaced', `owner_token = 'of another', version = 2`);
		expect(await during('UPDATE "', async () => await complete(workbench, store, handle, 'lead-1'))).toBe('stale taken_over');
		expect((await workbench.row('replaced')).history).toMatchObject([{ reference: null }, { reference: 'lead-1', reason: 'stale_claim' }]);
	});
});
