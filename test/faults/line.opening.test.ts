import type { Interception, Proxy } from '../support/proxy';
import { Workbench } from '../support/workbench';
import { BREAKS } from './support/breaks';
import { claim, claimFields, claimInPeace, complete, openRig, type Credential } from './support/rig';

/** The line to PostgreSQL breaks while it is opened, or while the first claim makes its table; or it is slow. */

let workbench: Workbench;
let proxy: Proxy;
let store: Credential;
let close: () => Promise<void>;

beforeAll(async () => {
	({ workbench, proxy, store, close } = await openRig(2000));
	await workbench.clear();
});
afterEach(async () => {
	proxy.forgetOrders();
	await proxy.forward();
	await workbench.clear();
});
afterAll(async () => await close());

/** The steps of opening a line; the message with the password is answered by the server's being ready. */
const OPENING: Record<string, () => Interception> = {
	'before its first message arrives': () => proxy.cutBefore('user\0'),
	'before its password arrives': () => proxy.cutBefore(workbench.database.password),
	'before its login is confirmed': () => proxy.loseAnswerTo(workbench.database.password),
	'in the middle of the confirmation': () => proxy.cutInsideAnswerTo(workbench.database.password),
	'by silence instead of the confirmation': () => proxy.swallowAnswerTo(workbench.database.password),
	'by silence from its first message on': () => proxy.goSilentAt('user\0'),
};

test.each(Object.entries(OPENING))('a line breaks while it is opened, %s: unreachable, nothing is sent, and the next delivery is new', async (_name, breakAt) => {
	const handle = await claimInPeace(workbench, 'acted');
	for (const work of [async () => await claim(workbench, store, ['a', 'b']), async () => [await complete(workbench, store, handle, 'lead-1')]]) {
		await proxy.cutAll();
		const broken = breakAt();
		const [said] = await Promise.all([work(), broken.happened]);
		await proxy.forward();
		expect(said).toEqual(said.map(() => 'error store_unreachable 503'));
	}
	expect((await workbench.rows()).map((row) => [row.delivery_id, row.state])).toEqual([['acted', 'processing']]);
	expect(await claim(workbench, store, ['a', 'b'])).toEqual(['new', 'new']);
	expect(await complete(workbench, store, handle, 'lead-1')).toBe('recorded');
});

describe.each(Object.entries(BREAKS))('the first claim on an empty database: %s', (_name, breakAt) => {
	let empty: Workbench;
	beforeEach(async () => (empty = await Workbench.open()));
	afterEach(async () => await empty.close());

	test.each(['BEGIN', 'pg_advisory_xact_lock', 'CREATE TABLE', 'COMMENT ON TABLE', 'COMMIT'])('of %s: unreachable, nothing is claimed, and the next delivery is new', async (statement) => {
		const broken = breakAt(proxy, statement);
		const credential = empty.credential({ port: proxy.port, timeoutMs: 2000 });
		const [said] = await Promise.all([claim(empty, credential, ['a', 'b']), broken.happened]);
		expect(said).toEqual(['error store_unreachable 503', 'error store_unreachable 503']);
		expect(await empty.rows()).toEqual([]);
		expect(await claim(empty, credential, ['a', 'b'])).toEqual(['new', 'new']);
	});
});

describe('a delayed line', () => {
	test('is only slow, as long as it is within the timeout', async () => {
		proxy.delay(100);
		const handle = await claimInPeace(workbench, 'known');
		expect(await claim(workbench, store, ['a', 'known', 'b'])).toEqual(['new', 'duplicate in_progress', 'new']);
		expect(await complete(workbench, store, handle, 'lead-1')).toBe('recorded');
	});

	test('whose answers come later than the timeout: unknown, and they are not taken for answers to what is asked next', async () => {
		const short = workbench.credential({ port: proxy.port, timeoutMs: 300 });
		expect(await claim(workbench, short, ['warm-up'])).toEqual(['new']);
		proxy.delay(250);
		const [said] = await claimFields(workbench, short, ['late']);
		expect(said.error?.kind).toBe('outcome_unknown');
		await proxy.forward();
		expect(await claim(workbench, short, ['a'])).toEqual(['new']);
		expect(await claim(workbench, short, ['a', 'b'])).toEqual(['duplicate in_progress', 'new']);
	});
});
