import { checkStore } from '../../store/check';
import { ClaimStore } from '../../store/claimStore';
import { Connection } from '../../store/connection/connection';
import type { ClaimRequest } from '../../store/request';
import { CLAIM_TABLE, ClaimTable, type TableDefinition } from '../../store/table/claimTable';
import { aCopyOf, anOutcome, anOwner, aRequest, changeRow, inShort, ownershipOf, rowOf, settingsFor } from '../store/support/claims';
import { textLike } from '../support/matchers';
import { LEASE_OVER } from '../support/timePassed';
import { claimNode, claimsOf, completeNode, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, RECORDED, Workbench } from '../support/workbench';
import { startPgBouncer } from './support/pgbouncer';
import { pressTest } from './support/site';
import { Through } from './support/through';

/** Through PgBouncer, in each of its pool modes and with few server connections, everything is as without it. */

const tally = (texts: string[]) => Object.fromEntries([...new Set(texts)].sort().map((text) => [text, texts.filter((other) => other === text).length]));

describe.each(['session', 'transaction', 'statement'] as const)('pool_mode = %s', (mode) => {
	let through: Through;
	/** Session mode gives each client a server connection of its own. */
	const size = mode === 'session' ? 20 : 2;

	beforeEach(async () => {
		through = await Through.pgBouncer({ pool_mode: mode, default_pool_size: size });
		// Statement mode cannot make it; the others show it below.
		if (mode === 'statement') await through.directStore().claim('claim', anOwner(), [aRequest()]);
	});
	afterEach(async () => await through.close());

	const claim = async (requests: ClaimRequest[], store: ClaimStore) => (await store.claim('claim', anOwner(), requests)).map(inShort);

	test('50 deliveries at once are 50 new claims', async () => {
		const stores = [1, 2, 3, 4, 5].map(() => through.store({ maxConnections: mode === 'session' ? 4 : 10 }));
		const before = mode === 'statement' ? 1 : 0;
		const said = await Promise.all(Array.from({ length: 50 }, async (_, n) => (await claim([aRequest()], stores[n % 5]))[0]));
		expect(tally(said)).toEqual({ 'new first_delivery': 50 });
		expect(await through.count()).toBe(before + 50);
		const servers = await through.pooler.admin<{ database: string }>('SHOW SERVERS');
		expect(servers.filter((server) => server.database === through.database.database).length).toBeLessThanOrEqual(size);
	});

	test('50 copies of one delivery at once are one new claim and 49 duplicates', async () => {
		const stores = [1, 2, 3, 4, 5].map(() => through.store({ maxConnections: mode === 'session' ? 4 : 10 }));
		const request = aRequest();
		const said = await Promise.all(Array.from({ length: 50 }, async (_, n) => (await claim([aCopyOf(request)], stores[n % 5]))[0]));
		expect(tally(said)).toEqual({ 'duplicate in_progress': 49, 'new first_delivery': 1 });
	});

	test('what one process has prepared another meets in its session: each claims on', async () => {
		const stores = [1, 2].map(() => through.store({ maxConnections: 2 }));
		const said: string[] = [];
		for (let n = 0; n < 20; n++) said.push(...(await claim([aRequest()], stores[n % 2])));
		expect(tally(said)).toEqual({ 'new first_delivery': 20 });
	});

	test('a batch with copies in it: each item gets its verdict', async () => {
		const requests = Array.from({ length: 600 }, () => aRequest());
		const said = await claim([...requests, ...requests.map((request) => aCopyOf(request))], through.store());
		expect(tally(said)).toEqual({ 'duplicate in_progress': 600, 'new first_delivery': 600 });
	});

	test('a takeover, its outcome, and the owner who lost it', async () => {
		const store = through.store();
		const request = aRequest({ whenLeaseExpires: 'takeOver' });
		const [first] = await store.claim('claim', anOwner(), [request]);
		await changeRow(through.database, request.identity, LEASE_OVER);
		const [second] = await store.claim('claim', anOwner(), [aCopyOf(request)]);
		expect(inShort(second)).toBe('new lease_expired');
		expect(await store.settle('completed', anOwner(), [anOutcome(ownershipOf(second), { reference: 'lead-1' })])).toMatchObject([{ verdict: 'recorded' }]);
		expect(await store.settle('completed', anOwner(), [anOutcome(ownershipOf(first), { reference: 'lead-2' })])).toMatchObject([{ verdict: 'stale' }]);
		expect(await rowOf(through.database, request.identity)).toMatchObject({ state: 'completed', outcome_reference: 'lead-1', version: 2 });
	});

	test('a key that another session holds: busy for its item only, and no time limit is left to the next client', async () => {
		await through.close();
		through = await Through.pgBouncer({ pool_mode: mode, default_pool_size: mode === 'session' ? 2 : 1 });
		const request = aRequest();
		await through.directStore().claim('claim', anOwner(), [request]);
		await changeRow(through.database, request.identity, `owner_token = 'of another', ${LEASE_OVER}, when_lease_expires = 'takeOver'`);
		const held = through.holder();
		await held.take(request.identity.deliveryId);

		const store = through.store({ timeoutMs: 1000, maxConnections: 1 });
		expect(await claim([aCopyOf(request), aRequest()], store)).toEqual(['error store_busy', 'new first_delivery']);
		await held.letGo();
		expect(await claim([aCopyOf(request)], store)).toEqual(['new lease_expired']);

		const [used] = await through.pooler.admin<{ remote_pid: number }>('SHOW SERVERS');
		await through.closeStores();
		const next = await through.client();
		const { rows } = await next.query<{ lock_timeout: string; pid: number }>(`SELECT current_setting('lock_timeout') AS lock_timeout, pg_backend_pid() AS pid`);
		await next.end();
		expect(rows).toEqual([{ lock_timeout: '0', pid: Number(used.remote_pid) }]);
	});

	test('the credential test passes', async () => {
		const { problems, summary } = await checkStore(settingsFor(through.address));
		expect({ problems, summary }).toEqual({ problems: [], summary: textLike(mode === 'statement' ? /is ready/ : /the first claim creates it/) });
	});

	test('a read-only server is said to be one', async () => {
		await through.directStore().claim('claim', anOwner(), [aRequest()]);
		await through.database.query(`ALTER DATABASE ${through.database.database} SET default_transaction_read_only = on`);
		const [answer] = await through.store().claim('claim', anOwner(), [aRequest()]);
		expect(answer).toMatchObject({ verdict: 'error', error: { kind: 'store_misconfigured', sqlState: '25006' } });
		expect((await checkStore(settingsFor(through.address))).problems.join()).toContain('read-only');
	});

	if (mode !== 'statement') {
		test('many processes make the table at the same moment, and many upgrade it', async () => {
			const stores = Array.from({ length: 12 }, () => through.store({ maxConnections: 1 }));
			expect(tally(await Promise.all(stores.map(async (store) => (await claim([aRequest()], store))[0])))).toEqual({ 'new first_delivery': 12 });

			const newer: TableDefinition = { ...CLAIM_TABLE, version: { major: 1, minor: 1 }, minorSteps: [{ to: { major: 1, minor: 1 }, sql: 'ALTER TABLE :"schema".:"table" ADD COLUMN note text' }] };
			const upgraders = Array.from({ length: 6 }, () => new ClaimStore(new ClaimTable(new Connection(settingsFor(through.address, { maxConnections: 1 })), newer)));
			expect(tally(await Promise.all(upgraders.map(async (store) => (await claim([aRequest()], store))[0])))).toEqual({ 'new first_delivery': 6 });
			await Promise.all(upgraders.map(async (store) => await store.close()));
			expect(await through.database.query(`SELECT obj_description('idempotent_claims'::regclass, 'pg_class') AS mark`)).toEqual([{ mark: 'n8n-nodes-idempotent-claim, schema 1.1' }]);
			expect(await through.count()).toBe(18);
		});
	}
});

describe('the nodes', () => {
	let workbench: Workbench;
	beforeAll(async () => void (workbench = await Workbench.open()));
	afterAll(async () => await workbench.close());

	test.each(['session', 'transaction'])('claim, complete and recognise a copy in %s mode', async (mode) => {
		const pooler = await startPgBouncer({ settings: { pool_mode: mode, default_pool_size: 2 } });
		const credential = workbench.credential({ host: pooler.host, port: pooler.port, maxConnections: 2 });
		expect(await pressTest(credential)).toMatchObject({ status: 'OK' });
		const workflow = guarded(claimNode({ source: mode }), ['Claim -> Complete', 'Claim[1] -> Duplicate', 'Claim[2] -> Alarm', 'Complete -> Action', 'Complete[2] -> Alarm']);
		workflow.nodes.Complete = completeNode({ outcomeReference: 'lead-1' });
		const options = { credentials: { store: credential } };

		const first = await workbench.run(workflow, { ...options, items: deliveries('a', 'b', 'a') });
		expect(claimsOf(first, 'Claim', NEW_CLAIM).map(({ deliveryId }) => deliveryId)).toEqual(['a', 'b']);
		expect(claimsOf(first, 'Complete', RECORDED)).toHaveLength(2);
		const again = await workbench.run(workflow, { ...options, items: deliveries('b') });
		expect(claimsOf(again, 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ reason: 'completed', outcome: { reference: 'lead-1' } }]);

		// Gone without a goodbye, and back: no restart of n8n.
		await pooler.kill();
		const meanwhile = await workbench.run(workflow, { ...options, items: deliveries('c') });
		// Unknown where the statement left before the cut was noticed.
		expect(claimsOf(meanwhile, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ responseCode: 503, error: { kind: textLike(/^(store_unreachable|outcome_unknown)$/), retryable: true } }]);
		await pooler.start();
		const after = await workbench.run(workflow, { ...options, items: deliveries('c') });
		expect(claimsOf(after, 'Claim', NEW_CLAIM)).toMatchObject([{ deliveryId: 'c', reason: 'first_delivery' }]);
		await pooler.remove();
	});
});
