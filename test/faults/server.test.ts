import { Client } from 'pg';
import { startOwnPostgres, type OwnPostgres } from '../support/ownPostgres';
import { LEASE_OVER } from '../support/timePassed';
import { Workbench } from '../support/workbench';
import { addGuest, claim, claimInPeace, complete } from './support/rig';

/** PostgreSQL itself is stopped in good order, killed, started again, or full; the process with the nodes goes on. */

let server: OwnPostgres;
let workbench: Workbench;
beforeAll(async () => {
	server = await startOwnPostgres();
	workbench = await Workbench.open({}, server);
	await claimInPeace(workbench, 'first of all');
});
afterEach(async () => await workbench.clear());
afterAll(async () => await server.remove());

describe.each(['stop', 'kill'] as const)('%s', (how) => {
	test('for a while: an error meanwhile; what was confirmed is there afterwards, and the next delivery is new', async () => {
		const store = workbench.credential({ timeoutMs: 1000 });
		const handles = [await claimInPeace(workbench, 'acted'), await claimInPeace(workbench, 'finished')];
		expect(await complete(workbench, store, handles[1], 'lead-0')).toBe('recorded');
		expect(await claim(workbench, store, ['before'])).toEqual(['new']);

		await server[how]();
		const first = await claim(workbench, store, ['a', 'before', 'b']);
		const then = [...(await claim(workbench, store, ['a', 'before', 'b'])), await complete(workbench, store, handles[0], 'lead-1')];
		await server.start();
		// The first claim may still meet a line that was open.
		for (const each of first) expect(each).toMatch(/^error (store_unreachable|outcome_unknown) 503$/);
		expect(then).toEqual(then.map(() => 'error store_unreachable 503'));

		expect(await claim(workbench, store, ['a', 'before', 'b', 'finished'])).toEqual(['new', 'duplicate in_progress', 'new', 'duplicate completed']);
		expect(await complete(workbench, store, handles[0], 'lead-1')).toBe('recorded');
		expect(await workbench.row('acted')).toMatchObject({ state: 'completed', outcome_reference: 'lead-1' });
		expect(await workbench.row('finished')).toMatchObject({ state: 'completed', outcome_reference: 'lead-0' });
	});

	test('and a start between two runs: nobody notices', async () => {
		const store = workbench.credential();
		const [handle] = [await claimInPeace(workbench, 'acted'), await claim(workbench, store, ['before'])];
		await server[how]();
		await server.start();
		expect(await claim(workbench, store, ['a', 'before', 'b'])).toEqual(['new', 'duplicate in_progress', 'new']);
		expect(await complete(workbench, store, handle, 'lead-1')).toBe('recorded');
	});

	test('and a start, while a claim and an outcome wait: they are sent again, and answered', async () => {
		const store = workbench.credential({ timeoutMs: 30_000 });
		const handle = await claimInPeace(workbench, 'held outcome');
		await claimInPeace(workbench, 'held claim', { options: { whenLeaseExpires: 'takeOver' } });
		await workbench.change('held claim', LEASE_OVER);
		const holder = new Client({ ...workbench.database });
		holder.on('error', () => undefined);
		await holder.connect();
		await holder.query('BEGIN');
		await holder.query(`SELECT FROM idempotent_claims FOR UPDATE`);

		const said = Promise.all([claim(workbench, store, ['a', 'held claim', 'b']), complete(workbench, store, handle, 'lead-1')]);
		while ((await workbench.database.query(`SELECT 1 FROM pg_stat_activity WHERE application_name = 'n8n-nodes-idempotent-claim' AND wait_event_type = 'Lock'`)).length < 2);
		await server[how]();
		await server.start();
		expect(await said).toEqual([['new', 'new', 'new'], 'recorded']);
		expect(await workbench.row('held claim')).toMatchObject({ version: 2, attempt: 2 });
		expect(await workbench.row('held outcome')).toMatchObject({ state: 'completed', outcome_reference: 'lead-1' });
	});
});

test('all connections of the server are taken: busy, until one is free', async () => {
	// A server for eight sessions, three of which are kept for superusers.
	await workbench.database.query('ALTER SYSTEM SET max_connections = 8');
	const guest = await addGuest(workbench, 'guest');
	await server.stop();
	await server.start();
	const handle = await claimInPeace(workbench, 'acted');
	const store = workbench.credential({ ...guest, timeoutMs: 1000 });

	const others: Client[] = [];
	const takeAnother = async () => {
		const client = new Client({ ...workbench.database, ...guest });
		client.on('error', () => undefined);
		await client.connect();
		others.push(client);
	};
	await expect((async () => { for (;;) await takeAnother(); })()).rejects.toMatchObject({ code: '53300' });
	const said = [...(await claim(workbench, store, ['a', 'b'])), await complete(workbench, store, handle, 'lead-1')];
	expect(said).toEqual(said.map(() => 'error store_busy 53300 503'));

	await Promise.all(others.map(async (client) => await client.end()));
	while ((await workbench.database.query(`SELECT 1 FROM pg_stat_activity WHERE usename = 'guest'`)).length > 0);
	expect(await claim(workbench, store, ['a', 'b'])).toEqual(['new', 'new']);
	expect(await complete(workbench, store, handle, 'lead-1')).toBe('recorded');
});
