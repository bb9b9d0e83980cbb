import { setImmediate } from 'node:timers/promises';
import type { Proxy } from '../support/proxy';
import { LEASE_OVER } from '../support/timePassed';
import type { Workbench } from '../support/workbench';
import { LASTING_BREAKS } from './support/breaks';
import { claim, claimFields, claimInPeace, complete, openRig, tokenOf, type Credential } from './support/rig';

/**
 * The line to PostgreSQL breaks at each step of each statement, and stays broken until the node has given up by
 * itself. Nobody is told more than is known; the record then shows what happened, and the work goes on.
 */

let workbench: Workbench;
let proxy: Proxy;
let store: Credential;
let close: () => Promise<void>;

beforeAll(async () => {
	({ workbench, proxy, store, close } = await openRig(500));
});
afterEach(async () => {
	proxy.forgetOrders();
	await proxy.forward();
	await workbench.clear();
});
afterAll(async () => await close());

describe.each(Object.entries(LASTING_BREAKS))('%s', (_name, { breakAt, carriedOut }) => {
	/** Breaks the line at that statement, and mends it when `work` has come to its end by itself. */
	async function during<T>(statement: string, work: () => Promise<T>): Promise<T> {
		expect(await claim(workbench, store, ['warm-up'])).toEqual(['new']);
		const broken = breakAt(proxy, statement);
		const [result] = await Promise.all([work(), broken.happened]);
		await proxy.forward();
		// No client with an unfinished statement is kept: all lines end, and with them what was still under way.
		while (proxy.open > 0) await setImmediate();
		const before = proxy.accepted;
		expect(await claim(workbench, store, ['afterwards'])).toEqual(['new']);
		expect(proxy.accepted).toBe(before + 1);
		return result;
	}

	test('of three deliveries, the second one known: unknown; the record then says what happened, and each handle works', async () => {
		await claimInPeace(workbench, 'known');
		const said = await during('INSERT INTO', async () => await claimFields(workbench, store, ['a', 'known', 'b']));
		for (const each of said) expect(each).toMatchObject({ responseCode: 503, error: { kind: 'outcome_unknown' } });
		const rows = new Map((await workbench.rows()).map((row) => [row.delivery_id, row]));
		expect(rows.get('known')).toMatchObject({ state: 'processing', version: 1 });
		for (const unknown of [said[0], said[2]]) {
			const { deliveryId, handle } = unknown as { deliveryId: string; handle: string };
			expect(rows.get(deliveryId)?.owner_token).toBe(carriedOut ? tokenOf(unknown) : undefined);
			expect(await claim(workbench, store, [deliveryId])).toEqual([carriedOut ? 'duplicate in_progress' : 'new']);
			expect(await complete(workbench, store, handle, 'lead-1')).toBe(carriedOut ? 'recorded' : 'stale taken_over');
		}
		// It was never this run's.
		expect(await complete(workbench, store, String(said[1].handle), 'lead-1')).toBe('stale taken_over');
	});

	test('of a delivery that is only stored: unknown; it is there, or the next copy stores it, and it is claimed once', async () => {
		const receive = async () => await claim(workbench, store, ['a'], { operation: 'receive' });
		expect(await during('INSERT INTO', receive)).toEqual(['error outcome_unknown 503']);
		expect(await receive()).toEqual([carriedOut ? 'duplicate received' : 'new']);
		expect(await claim(workbench, store, ['a'])).toEqual(['new']);
	});

	// There is no outcome to wait for: a copy that nobody let through is remembered like any other.
	test('of plain deduplication: unknown; if it was carried out, the next copy is a duplicate all the same', async () => {
		const deduplicate = async () => await claim(workbench, store, ['a'], { operation: 'deduplicate' });
		expect(await during('INSERT INTO', deduplicate)).toEqual(['error outcome_unknown 503']);
		expect(await deduplicate()).toEqual([carriedOut ? 'duplicate completed' : 'new']);
	});

	test('of a takeover: unknown; taken over once, now or by the next delivery', async () => {
		await claimInPeace(workbench, 'old', { options: { whenLeaseExpires: 'takeOver' } });
		await workbench.change('old', LEASE_OVER);
		const [said] = await during('UPDATE "', async () => await claimFields(workbench, store, ['old']));
		expect(said.error?.kind).toBe('outcome_unknown');
		const row = await workbench.row('old');
		expect(row).toMatchObject(carriedOut ? { owner_token: tokenOf(said), version: 2, attempt: 2 } : { version: 1, attempt: 1 });
		expect(await claim(workbench, store, ['old'])).toEqual([carriedOut ? 'duplicate in_progress' : 'new']);
		expect(await workbench.row('old')).toMatchObject({ state: 'processing', version: 2, attempt: 2 });
	});

	test('of an ended lease: unknown; noted once, now or by the next delivery', async () => {
		await claimInPeace(workbench, 'old');
		await workbench.change('old', LEASE_OVER);
		expect(await during('UPDATE "', async () => await claim(workbench, store, ['old']))).toEqual(['error outcome_unknown 503']);
		expect(await workbench.row('old')).toMatchObject({ state: carriedOut ? 'outcome_uncertain' : 'processing', version: 1 });
		expect(await claim(workbench, store, ['old'])).toEqual(['duplicate outcome_uncertain']);
		expect((await workbench.row('old')).history).toHaveLength(2);
	});

	test('of an outcome: unknown; recorded once, now or when it is asked again', async () => {
		const handle = await claimInPeace(workbench, 'acted');
		expect(await during('UPDATE "', async () => await complete(workbench, store, handle, 'lead-1'))).toBe('error outcome_unknown 503');
		expect(await workbench.row('acted')).toMatchObject(carriedOut ? { state: 'completed', outcome_reference: 'lead-1' } : { state: 'processing', outcome_reference: null });
		expect(await complete(workbench, store, handle, 'lead-1')).toBe('recorded');
		const row = await workbench.row('acted');
		expect(row).toMatchObject({ state: 'completed', outcome_reference: 'lead-1' });
		expect(row.history).toHaveLength(2);
	});

	test('of the note of what a replaced owner did: unknown; said and noted once when it is asked again', async () => {
		const handle = await claimInPeace(workbench, 'replaced');
		await workbench.change('replaced', `owner_token = 'of another', version = 2`);
		expect(await during('stale_claim', async () => await complete(workbench, store, handle, 'lead-1'))).toBe('error outcome_unknown 503');
		expect(await complete(workbench, store, handle, 'lead-1')).toBe('stale taken_over');
		expect((await workbench.row('replaced')).history).toMatchObject([{ reference: null }, { reference: 'lead-1', reason: 'stale_claim' }]);
	});

	// Only reads are unanswered: what is certain is said, and what is not read is certainly not changed.
	test('of the look at the record that a known delivery needs: it is not told from others, its neighbours are new', async () => {
		await claimInPeace(workbench, 'known');
		const said = await during('JOIN "', async () => await claim(workbench, store, ['a', 'known', 'b']));
		expect(said).toEqual(['new', 'error store_unreachable 503', 'new']);
		expect(await claim(workbench, store, ['a', 'known', 'b'])).toEqual(['duplicate in_progress', 'duplicate in_progress', 'duplicate in_progress']);
	});
});
