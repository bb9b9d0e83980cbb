import { openClaimStore, type ClaimStore } from '../../store/claimStore';
import { createTestDatabase, type TestDatabase } from '../support/database';
import type { Ownership } from '../../store/handle';
import type { ClaimRequest } from '../../store/request';
import { startOwnPostgres, type OwnPostgres } from '../support/ownPostgres';
import { startProxy, type Proxy } from '../support/proxy';
import { startStandby, type Standby } from '../support/standby';
import { aCopyOf, anOutcome, anOwner, aRequest, inShort, ownershipOf, settingsFor } from './support/claims';

/** A primary and a standby. What is confirmed and not yet replicated is lost when the standby takes over: a limit, and how it shows. */

let primary: OwnPostgres;
let standby: Standby;
let database: TestDatabase;
/** The address that clients know; a failover moves it to another server. */
let address: { host: string; port: number };
let proxy: Proxy;
let store: ClaimStore;
/** Resolves when the store has noticed that its idle connection is gone. */
let dropped: Promise<unknown>;

beforeEach(async () => {
	primary = await startOwnPostgres();
	database = await createTestDatabase(primary);
	standby = await startStandby(primary);
	address = { host: primary.host, port: primary.port };
	proxy = await startProxy(address);
	dropped = new Promise((resolve) => {
		store = openClaimStore(settingsFor({ ...database, host: proxy.host, port: proxy.port }, { timeoutMs: 1500 }), resolve);
	});
	await store.claim('claim', anOwner(), [aRequest()]);
	await standby.caughtUp();
});
afterEach(async () => {
	await store.close();
	await proxy.close();
	await standby.remove();
	await primary.remove();
});

const claim = async (request: ClaimRequest) => (await store.claim('claim', anOwner(), [request]))[0];
const complete = async (claimed: Ownership) => (await store.settle('completed', anOwner(), [anOutcome(claimed, { reference: 'lead-1' })]))[0];

async function useStandby(): Promise<void> {
	address.port = standby.port;
	await proxy.cutAll();
	await dropped;
}

async function failOver(): Promise<void> {
	await primary.kill();
	await standby.promote();
	await useStandby();
}

async function demandSynchronousCommit(): Promise<void> {
	await database.query(`ALTER SYSTEM SET synchronous_standby_names = 'standby'`);
	await database.query('SELECT pg_reload_conf()');
	while ((await database.query(`SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`)).length === 0);
}

test('a standby is read-only: an error that says so, neither new nor duplicate', async () => {
	const known = aRequest();
	await claim(known);
	await standby.caughtUp();
	await useStandby();
	for (const request of [aCopyOf(known), aRequest()]) {
		expect(await claim(request)).toMatchObject({ verdict: 'error', error: { kind: 'store_misconfigured', sqlState: '25006', hint: expect.stringContaining('primary') as string } });
	}
});

test('asynchronous replication: what the standby had is kept; a confirmed claim that it had not is forgotten, and its late outcome is not taken for recorded', async () => {
	const [kept, forgotten, redelivered] = [aRequest(), aRequest(), aRequest()];
	const keptClaim = ownershipOf(await claim(kept));
	await standby.caughtUp();
	await standby.stopFollowing();
	const forgottenClaim = ownershipOf(await claim(forgotten));
	const redeliveredClaim = ownershipOf(await claim(redelivered));

	await failOver();
	expect(inShort(await claim(aCopyOf(kept)))).toBe('duplicate in_progress');
	expect(await complete(keptClaim)).toMatchObject({ verdict: 'recorded' });
	// The limit: the delivery is new once more.
	expect(inShort(await claim(aCopyOf(redelivered)))).toBe('new first_delivery');
	expect(await complete(redeliveredClaim)).toMatchObject({ verdict: 'stale', reason: 'taken_over' });
	expect(await complete(forgottenClaim)).toMatchObject({ verdict: 'stale', reason: 'not_found' });
});

test('synchronous replication: a confirmed claim outlives the primary', async () => {
	await demandSynchronousCommit();
	const request = aRequest();
	const claimed = ownershipOf(await claim(request));
	await failOver();
	expect(inShort(await claim(aCopyOf(request)))).toBe('duplicate in_progress');
	expect(await complete(claimed)).toMatchObject({ verdict: 'recorded' });
});

test('synchronous replication without its standby: nothing is new that the standby has not confirmed; once it is back, the claim is recognised', async () => {
	await demandSynchronousCommit();
	await standby.stopFollowing();
	const request = aRequest();
	const owner = anOwner();
	expect((await store.claim('claim', owner, [request])).map(inShort)).toEqual(['error outcome_unknown']);
	expect(await complete({ identity: request.identity, ownerToken: request.ownerToken, version: 1 })).toMatchObject({ verdict: 'stale', reason: 'not_found' });

	await standby.follow();
	while (inShort((await store.claim('claim', owner, [request]))[0]) !== 'new first_delivery');
	await failOver();
	expect(inShort(await claim(aCopyOf(request)))).toBe('duplicate in_progress');
});
