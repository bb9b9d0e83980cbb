import { openClaimStore } from '../../store/claimStore';
import { checkStore } from '../../store/check';
import { readSettings, type ClaimStoreCredential } from '../../store/connection/settings';
import type { ClaimError } from '../../store/errors';
import type { ClaimRequest } from '../../store/request';
import { aCopyOf, anOwner, aRequest, changeRow, inShort, rowOf, settingsFor } from '../store/support/claims';
import { textLike, textWith } from '../support/matchers';
import { startOwnPostgres } from '../support/ownPostgres';
import { LEASE_OVER } from '../support/timePassed';
import { startPgBouncer } from './support/pgbouncer';
import { Through } from './support/through';

/** What PgBouncer says when something goes wrong, and what it does to lines: never a false certainty, and work goes on afterwards. */

let through: Through;
afterEach(async () => await through.close());

const open = async (settings: Record<string, string | number> = {}) => (through = await Through.pgBouncer({ pool_mode: 'transaction', server_login_retry: 1, ...settings }));

/** Says the same as the credential test, and tells no secret. */
async function failureOf(credential: ClaimStoreCredential): Promise<ClaimError> {
	const settings = readSettings(credential);
	const store = openClaimStore(settings);
	try {
		const [answer] = await store.claim('claim', anOwner(), [aRequest()]);
		if (answer.verdict !== 'error') throw new Error(`No error: ${inShort(answer)}`);
		const { error } = answer;
		expect((await checkStore(settings)).problems.join()).toContain(error.hint);
		expect(JSON.stringify({ ...error, message: error.message, stack: error.stack })).not.toContain(through.address.password);
		return error;
	} finally {
		await store.close();
	}
}

const fields = (changes: ClaimStoreCredential = {}): ClaimStoreCredential => ({ ...through.address, timeoutMs: 3000, ...changes });
const claim = async (request: ClaimRequest, store = through.store({ timeoutMs: 1500 })) => inShort((await store.claim('claim', anOwner(), [request]))[0]);

describe('a connection that PgBouncer refuses', () => {
	test('wrong password', async () => {
		await open();
		expect(await failureOf(fields({ password: 'wrong' }))).toMatchObject({ kind: 'store_denied', hint: textWith('Check user and password') });
	});

	test('unknown user', async () => {
		await open();
		expect(await failureOf(fields({ user: 'nobody-here' }))).toMatchObject({ kind: 'store_denied', message: textWith('"nobody-here"') });
	});

	test('unknown database', async () => {
		await open();
		expect(await failureOf(fields({ database: 'not_there' }))).toMatchObject({ kind: 'store_misconfigured', message: textWith('"not_there"') });
	});

	test('options in the connection string', async () => {
		await open();
		const { user, password, host, port, database } = through.address;
		const connectionString = `postgresql://${user}:${password}@${host}:${port}/${database}?options=-c%20search_path%3Dapp`;
		expect(await failureOf({ connectWith: 'connectionString', connectionString })).toMatchObject({
			kind: 'store_misconfigured',
			message: textWith('unsupported startup parameter: options'),
			hint: textWith('Remove options='),
		});
	});

	test('TLS, and PgBouncer has none', async () => {
		await open();
		expect(await failureOf(fields({ tls: 'require' }))).toMatchObject({ kind: 'store_misconfigured', message: textWith('the server has no TLS') });
	});

	test('no connection to spare', async () => {
		await open({ max_client_conn: 1 });
		// The line by which the start of PgBouncer was seen may still count.
		let other;
		while (other === undefined) other = await through.client().catch(() => undefined);
		expect(await failureOf(fields())).toMatchObject({ kind: 'store_busy', message: textWith('max_client_conn'), hint: textWith('Lower Maximum Connections') });
		await other.end();
	});

	test('PgBouncer itself has the wrong password for PostgreSQL', async () => {
		await open();
		const astray = await startPgBouncer({ server: { ...through.database, password: 'not-that' }, settings: { pool_mode: 'transaction', auth_type: 'plain', server_login_retry: 1 } });
		expect(await failureOf(fields({ port: astray.port, password: 'not-that' }))).toMatchObject({ kind: 'store_denied', message: textWith('password authentication failed') });
		await astray.remove();
	});
});

describe('statement mode', () => {
	test.failing('says that the table cannot be made through it', async () => {
		await open({ pool_mode: 'statement' });
		expect(await failureOf(fields())).toMatchObject({ kind: 'store_misconfigured', message: textWith('statement'), hint: textWith('claim-table.sql') });
	});

	test('makes nothing, not even half a table', async () => {
		await open({ pool_mode: 'statement' });
		expect(await claim(aRequest())).toMatch(/^error store_/);
		expect(await through.database.query(`SELECT to_regclass('idempotent_claims') AS there`)).toEqual([{ there: null }]);
	});
});

describe('a statement that PgBouncer does not let through', () => {
	test('no server connection comes free in time (query_wait_timeout): not new, not there, and new afterwards', async () => {
		await open({ default_pool_size: 1, query_wait_timeout: 1 });
		const store = through.store({ timeoutMs: 2000 });
		await claim(aRequest(), store);
		const other = await through.client();
		await other.query('BEGIN');
		const request = aRequest();
		expect(await claim(request, store)).toMatch(/^error (outcome_unknown|store_unreachable|store_busy)$/);
		expect(await through.count()).toBe(1);
		await other.query('ROLLBACK');
		await other.end();
		expect(await claim(request, store)).toBe('new first_delivery');
	});

	test('a statement takes too long (query_timeout): unknown, since it may still land; the same token then finds it', async () => {
		await open({ query_timeout: 1 });
		const store = through.store({ timeoutMs: 3000 });
		const request = aRequest({ whenLeaseExpires: 'takeOver' });
		await claim(request, store);
		await changeRow(through.database, request.identity, LEASE_OVER);
		const holder = through.holder();
		await holder.take(request.identity.deliveryId);
		const copy = aCopyOf(request);
		expect(await claim(copy, store)).toBe('error outcome_unknown');
		await holder.letGo();
		expect(await claim(copy, store)).toBe('new lease_expired');
		expect(await rowOf(through.database, request.identity)).toMatchObject({ owner_token: copy.ownerToken, version: 2 });
	});
});

describe('lines that PgBouncer cuts', () => {
	test.each(['kill', 'stop'] as const)('%s while claims are under way: each is claimed once, by its own token', async (how) => {
		await open({ default_pool_size: 4 });
		const store = through.store({ timeoutMs: 5000 });
		await claim(aRequest(), store);
		const requests = Array.from({ length: 200 }, () => aRequest());
		const answers = requests.map(async (request) => await claim(request, store));
		await answers[20];
		await through.pooler[how]();
		await through.pooler.start();
		const said = await Promise.all(answers);
		for (const [index, request] of requests.entries()) {
			if (said[index] === 'new first_delivery') expect(await rowOf(through.database, request.identity)).toMatchObject({ owner_token: request.ownerToken });
			else expect(said[index]).toMatch(/^error (store_unreachable|outcome_unknown)$/);
		}
		// What was in doubt is recognised by its token; what was not claimed is new now.
		expect(new Set(await Promise.all(requests.map(async (request) => await claim(request, store))))).toEqual(new Set(['new first_delivery']));
		expect(await through.count()).toBe(201);
	});

	test('idle connections dropped (client_idle_timeout): one line each for the log, and the next claim works', async () => {
		const lines: string[] = [];
		await open({ client_idle_timeout: 1 });
		const store = through.store({ maxConnections: 1 }, (line) => lines.push(line));
		await claim(aRequest(), store);
		const { database } = through.database;
		while ((await through.pooler.admin<{ database: string }>('SHOW CLIENTS')).some((client) => client.database === database));
		expect(await claim(aRequest(), store)).toBe('new first_delivery');
		expect(lines).toEqual([textLike(/^An idle connection to the claim store was dropped/)]);
	});

	test('server connections replaced (RECONNECT, as server_lifetime does) under load: nobody notices', async () => {
		await open({ default_pool_size: 2 });
		const store = through.store();
		await claim(aRequest(), store);
		for (let round = 0; round < 5; round++) {
			const answers = Array.from({ length: 20 }, async () => await claim(aRequest(), store));
			await through.pooler.admin('RECONNECT');
			expect(new Set(await Promise.all(answers))).toEqual(new Set(['new first_delivery']));
		}
	});

	test('server connections ended by PostgreSQL under load: each claim is its own all the same', async () => {
		await open({ default_pool_size: 2 });
		const store = through.store({ timeoutMs: 5000 });
		await claim(aRequest(), store);
		const requests = Array.from({ length: 50 }, () => aRequest());
		const answers = requests.map(async (request) => await claim(request, store));
		await through.database.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`);
		const said = await Promise.all(answers);
		const again = await Promise.all(requests.map(async (request) => await claim(request, store)));
		expect(said.every((one) => /^(new first_delivery|error (outcome_unknown|store_unreachable))$/.test(one))).toBe(true);
		expect(new Set(again)).toEqual(new Set(['new first_delivery']));
		expect(await through.count()).toBe(51);
	});
});

describe('PostgreSQL behind PgBouncer', () => {
	test('is down: an error that a later delivery may get over; back again, the next claim works', async () => {
		const own = await startOwnPostgres();
		through = await Through.pgBouncer({ pool_mode: 'transaction', query_wait_timeout: 2, server_login_retry: 1 }, own);
		const store = through.store({ timeoutMs: 4000 });
		await claim(aRequest(), store);
		await own.stop();
		const request = aRequest();
		expect(await claim(request, store)).toMatch(/^error (store_unreachable|outcome_unknown)$/);
		// A process that has no connection yet cannot have sent anything.
		expect(await failureOf(fields({ timeoutMs: 4000 }))).toMatchObject({ kind: 'store_unreachable', retryable: true });

		await own.start();
		// PgBouncer tries again a second after its last failure.
		let said;
		do said = await claim(request, store);
		while (/^error (store_unreachable|outcome_unknown)$/.test(said));
		expect(said).toBe('new first_delivery');
		expect(await checkStore(settingsFor(through.address))).toMatchObject({ problems: [] });
		await through.closeStores();
		await own.remove();
		await through.pooler.remove();
		through = await Through.pgBouncer({});
	});
});
