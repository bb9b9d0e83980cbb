import { setImmediate } from 'node:timers/promises';
import { openClaimStore, type ClaimStore } from '../../store/claimStore';
import { connectionFailure, isRefusal } from '../../store/connection/failures';
import type { ClaimStoreCredential } from '../../store/connection/settings';
import type { ClaimError, ErrorKind } from '../../store/errors';
import type { ClaimRequest } from '../../store/request';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { freePort } from '../support/freePort';
import { startProxy } from '../support/proxy';
import { aCopyOf, anIdentity, anOwner, aRequest, inShort, settingsFor } from './support/claims';

/** The part of the driver that answers SCRAM. */
interface Sasl {
	startSession(mechanisms: string[]): unknown;
	continueSession(session: unknown, password: string | null, serverData: string): Promise<void>;
}

/** Everything that a real server refuses: each its own clear error, nothing claimed, no secret told. */

let database: TestDatabase;
/** A role that may do little, with a database and a table of its own. */
let role: string;
const PASSWORD = 'hunter2-S3cret';
const stores: ClaimStore[] = [];

beforeEach(async () => {
	database = await createTestDatabase();
	role = `app_${database.database}`;
	await database.query(`CREATE ROLE ${role} LOGIN PASSWORD '${PASSWORD}'`);
});
afterEach(async () => {
	await Promise.all(stores.splice(0).map(async (store) => await store.close()));
	await database.query(`DROP OWNED BY ${role}`);
	await database.query(`DROP ROLE ${role}`);
	await database.drop();
});

function open(credential: ClaimStoreCredential = {}): ClaimStore {
	const store = openClaimStore(settingsFor(database, credential));
	stores.push(store);
	return store;
}

const asRole = (credential: ClaimStoreCredential = {}) => open({ user: role, password: PASSWORD, ...credential });

/** The table, made by its owner. */
async function makeTable(): Promise<void> {
	await open().claim('claim', anOwner(), [aRequest()]);
}

const PAYLOAD = 'the-payload-of-a-sender';

async function failureOf(store: ClaimStore, request: ClaimRequest = aRequest({ payload: { json: `{"text":"${PAYLOAD}"}`, complete: true } })): Promise<ClaimError> {
	const [answer] = await store.claim('claim', anOwner(), [request]);
	if (answer.verdict !== 'error') throw new Error(`No error: ${inShort(answer)}`);
	const { error } = answer;
	// Nothing that anybody could print of it tells a secret.
	const text = JSON.stringify({ ...error, message: error.message, stack: error.stack, cause: error.cause });
	for (const secret of [PASSWORD, database.password, PAYLOAD]) expect(text).not.toContain(secret);
	expect(error.hint).toMatch(/./);
	expect(error.retryable).toBe((['store_unreachable', 'store_busy', 'outcome_unknown'] as ErrorKind[]).includes(error.kind));
	return error;
}

describe('no connection', () => {
	test('wrong password', async () => {
		const error = await failureOf(asRole({ password: 'wrong-S3cret' }));
		expect(error).toMatchObject({ kind: 'store_denied', sqlState: '28P01' });
		expect(error.message).toContain(role);
		expect(JSON.stringify({ ...error, message: error.message, stack: error.stack })).not.toContain('wrong-S3cret');
	});

	test('unknown user', async () => {
		expect(await failureOf(open({ user: 'nobody-here' }))).toMatchObject({ kind: 'store_denied', sqlState: expect.stringMatching(/^28/) as string });
	});

	test.each([PASSWORD, 'wrong'])('with SCRAM, as servers have it by default, password "%s"', async (password) => {
		await inHba(`host ${database.database} ${role} 127.0.0.1/32 scram-sha-256`, async () => {
			if (password === PASSWORD) {
				await database.query(`GRANT CREATE ON SCHEMA public TO ${role}`);
				expect((await asRole().claim('claim', anOwner(), [aRequest()])).map(inShort)).toEqual(['new first_delivery']);
			} else {
				expect((await failureOf(asRole({ password }))).kind).toBe('store_denied');
			}
		});
	});

	test('a server that asks for a password, and none is filled in: the line is closed, not left to the server', async () => {
		const proxy = await startProxy(database);
		await inHba(`host ${database.database} ${role} 127.0.0.1/32 scram-sha-256`, async () => {
			const { host, port } = proxy;
			expect(await failureOf(open({ host, port, user: role, password: '' }))).toMatchObject({ kind: 'store_denied', message: expect.stringContaining('asks for a password') as string });
			expect(proxy.accepted).toBeGreaterThan(0);
			while (proxy.open > 0) await setImmediate();
		});
		await proxy.close();
	});

	test('not allowed by pg_hba.conf', async () => {
		await inHba(`host ${database.database} ${role} 127.0.0.1/32 reject`, async () => {
			expect(await failureOf(asRole())).toMatchObject({ kind: 'store_denied', sqlState: '28000', hint: expect.stringContaining('pg_hba.conf') as string });
		});
	});

	test('unknown database', async () => {
		expect(await failureOf(open({ database: 'not_there' }))).toMatchObject({ kind: 'store_misconfigured', sqlState: '3D000', message: expect.stringContaining('"not_there"') as string });
	});

	test('nothing listens', async () => {
		const error = await failureOf(open({ port: await freePort() }));
		expect(error).toMatchObject({ kind: 'store_unreachable', sqlState: null });
		expect(error.hint).toContain("In Docker, use the service's name, not localhost");
	});

	test('unknown host', async () => {
		expect(await failureOf(open({ host: 'nowhere.invalid' }))).toMatchObject({ kind: 'store_unreachable', message: expect.stringContaining('nowhere.invalid') as string });
	});

	test('a server that accepts and says nothing', async () => {
		const proxy = await startProxy(database);
		proxy.goSilent();
		expect((await failureOf(open({ host: proxy.host, port: proxy.port, timeoutMs: 300 }))).kind).toBe('store_unreachable');
		await proxy.close();
	});

	test.each(['require', 'verifyFull'] as const)('TLS %s, and the server has none', async (tls) => {
		expect(await failureOf(open({ tls }))).toMatchObject({ kind: 'store_misconfigured', message: expect.stringContaining('the server has no TLS') as string });
	});

	test('no connection to spare', async () => {
		await database.query(`ALTER ROLE ${role} CONNECTION LIMIT 0`);
		expect(await failureOf(asRole())).toMatchObject({ kind: 'store_busy', sqlState: '53300' });
	});

	/** Runs `work` with a line put before the others of pg_hba.conf; it concerns this test's database alone. */
	async function inHba(line: string, work: () => Promise<void>): Promise<void> {
		const [{ hba_file: file }] = await database.query<{ hba_file: string }>('SHOW hba_file');
		const [{ text }] = await database.query<{ text: string }>('SELECT pg_read_file($1) AS text', [file]);
		const write = async (lines: string) => {
			await database.query('CREATE TEMP TABLE hba AS SELECT line, n FROM unnest($1::text[]) WITH ORDINALITY AS lines(line, n)', [lines.split('\n')]);
			await database.query(`COPY (SELECT line FROM hba ORDER BY n) TO '${file}'`);
			await database.query('DROP TABLE hba');
			const loadTime = async () => String((await database.query<{ at: string }>('SELECT pg_conf_load_time()::text AS at'))[0].at);
			const before = await loadTime();
			await database.query('SELECT pg_reload_conf()');
			// The server tells its sessions of the reload while it does it, and accepts nobody meanwhile.
			while ((await loadTime()) === before);
		};
		await write(`${line}\n${text}`);
		try {
			await work();
		} finally {
			await write(text);
		}
	}
});

describe('no right', () => {
	test('to create the table', async () => {
		expect(await failureOf(asRole())).toMatchObject({ kind: 'store_denied', sqlState: '42501', hint: expect.stringContaining('grant CREATE on the schema') as string });
		expect(await database.query(`SELECT to_regclass('public.idempotent_claims') AS there`)).toEqual([{ there: null }]);
	});

	test.each([
		['to insert', 'SELECT, UPDATE'],
		['to select', 'INSERT, UPDATE'],
	])('%s', async (_what, granted) => {
		await makeTable();
		await database.query(`GRANT ${granted} ON idempotent_claims TO ${role}`);
		expect(await failureOf(asRole())).toMatchObject({ kind: 'store_denied', sqlState: '42501' });
	});

	test('to update: new claims work, outcomes are refused', async () => {
		await makeTable();
		await database.query(`GRANT SELECT, INSERT ON idempotent_claims TO ${role}`);
		const store = asRole();
		const [answer] = await store.claim('claim', anOwner(), [aRequest()]);
		if (answer.verdict !== 'new') throw new Error(inShort(answer));
		const { identity, ownerToken, version } = answer.record;
		const outcome = { claim: { identity, ownerToken, version }, reference: null, reason: null, result: null, keepPayload: false, retryAfterSeconds: 60, leaseSeconds: 300 };
		expect(await store.settle('completed', anOwner(), [outcome])).toMatchObject([{ verdict: 'error', error: { kind: 'store_denied', sqlState: '42501' } }]);
	});

	test('to use the schema', async () => {
		await database.query('CREATE SCHEMA closed');
		await open({ schema: 'closed' }).claim('claim', anOwner(), [aRequest()]);
		expect(await failureOf(asRole({ schema: 'closed' }))).toMatchObject({ kind: 'store_denied', sqlState: '42501' });
	});

	test('SELECT, INSERT, UPDATE and USAGE are enough', async () => {
		await makeTable();
		await database.query(`GRANT SELECT, INSERT, UPDATE ON idempotent_claims TO ${role}`);
		expect((await asRole().claim('claim', anOwner(), [aRequest()])).map(inShort)).toEqual(['new first_delivery']);
	});

	test("to see another's row (row-level security): an error, neither new nor duplicate", async () => {
		const request = aRequest();
		await open().claim('claim', anOwner(), [request]);
		await database.query(`GRANT SELECT, INSERT, UPDATE ON idempotent_claims TO ${role}`);
		await database.query('ALTER TABLE idempotent_claims ENABLE ROW LEVEL SECURITY');
		await database.query(`CREATE POLICY own ON idempotent_claims USING (owner_node_name = 'mine')`);
		expect((await failureOf(asRole(), aCopyOf(request))).kind).toMatch(/^store_(denied|misconfigured)$/);
	});
});

describe('a read-only session', () => {
	test('by the role', async () => {
		await makeTable();
		await database.query(`GRANT SELECT, INSERT, UPDATE ON idempotent_claims TO ${role}`);
		await database.query(`ALTER ROLE ${role} SET default_transaction_read_only = on`);
		expect(await failureOf(asRole())).toMatchObject({ kind: 'store_misconfigured', sqlState: '25006', hint: expect.stringContaining('primary') as string });
	});

	test('by the database, before there is a table', async () => {
		await database.query(`ALTER DATABASE ${database.database} SET default_transaction_read_only = on`);
		expect(await failureOf(open())).toMatchObject({ kind: 'store_misconfigured', sqlState: '25006' });
		await database.query(`ALTER DATABASE ${database.database} RESET default_transaction_read_only`);
	});
});

describe('a table that does not fit', () => {
	const rows = async () => (await database.query<{ count: number }>('SELECT count(*)::int AS count FROM idempotent_claims'))[0].count;

	test('is not there, and Create Table is off', async () => {
		expect(await failureOf(open({ createTable: false }))).toMatchObject({ kind: 'store_misconfigured', sqlState: null, hint: expect.stringContaining('claim-table.sql') as string });
		expect(await database.query(`SELECT to_regclass('public.idempotent_claims') AS there`)).toEqual([{ there: null }]);
	});

	test('has no schema', async () => {
		expect(await failureOf(open({ schema: 'nowhere' }))).toMatchObject({ kind: 'store_misconfigured', sqlState: '3F000', message: expect.stringContaining('"nowhere"') as string });
	});

	// What was wrong before the first claim is found by looking at the table (test/databases/); this comes later.
	test.each([
		['its key', 'DROP CONSTRAINT idempotent_claims_pkey', '42P10'],
		['a part of its key', 'DROP CONSTRAINT idempotent_claims_pkey, ADD PRIMARY KEY (delivery_id)', '42P10'],
		['a column', 'DROP COLUMN event_type', '42703'],
	])('loses %s under a running process', async (_what, change, sqlState) => {
		const store = open();
		await store.claim('claim', anOwner(), [aRequest()]);
		await database.query(`ALTER TABLE idempotent_claims ${change}`);
		expect(await failureOf(store)).toMatchObject({ kind: 'store_misconfigured', sqlState });
		expect(await rows()).toBe(1);
	});

	test('has another unique index: only the items that it hits are refused', async () => {
		await makeTable();
		await database.query('CREATE UNIQUE INDEX ON idempotent_claims (event_type)');
		const requests = ['a', 'b', 'a', 'c'].map((eventType) => aRequest({ eventType }));
		const answers = await open().claim('claim', anOwner(), requests);
		const short = answers.map(inShort);
		expect([short[1], short[3]]).toEqual(['new first_delivery', 'new first_delivery']);
		expect([short[0], short[2]].sort()).toEqual(['error store_misconfigured', 'new first_delivery']);
		expect(answers.find(({ verdict }) => verdict === 'error')).toMatchObject({ error: { sqlState: '23505' } });
	});

	test('has a constraint of its own: only the items that it hits are refused', async () => {
		await makeTable();
		await database.query(`ALTER TABLE idempotent_claims ADD CHECK (source <> 'unwanted')`);
		const requests = [aRequest(), aRequest({ identity: anIdentity({ source: 'unwanted' }) })];
		expect((await open().claim('claim', anOwner(), requests)).map(inShort)).toEqual(['new first_delivery', 'error store_misconfigured']);
	});

	test.each([
		['a rule', 'CREATE RULE nothing AS ON INSERT TO idempotent_claims DO INSTEAD NOTHING', '0A000'],
		['a deferrable key', 'ALTER TABLE idempotent_claims DROP CONSTRAINT idempotent_claims_pkey, ADD PRIMARY KEY (delivery_id, source, account, action, environment) DEFERRABLE', '55000'],
		['a column that would cut', 'ALTER TABLE idempotent_claims ALTER owner_node_id TYPE varchar(1)', '22001'],
	])('gets %s under a running process', async (_what, change, sqlState) => {
		const other = await createTestDatabase();
		const store = openClaimStore(settingsFor(other));
		await store.claim('claim', anOwner({ nodeId: 'n' }), [aRequest()]);
		await other.query(change);
		expect(await store.claim('claim', anOwner(), [aRequest()])).toMatchObject([{ verdict: 'error', error: { kind: 'store_misconfigured', sqlState } }]);
		await store.close();
		await other.drop();
	});

	test('has a trigger that swallows inserts: neither new nor duplicate', async () => {
		await makeTable();
		await trigger('RETURN NULL');
		expect(await failureOf(open())).toMatchObject({ kind: 'store_misconfigured', message: 'The claim was neither inserted nor found' });
		expect(await rows()).toBe(1);
	});

	test('has a trigger that fails: its text, which may hold data, is not repeated', async () => {
		await makeTable();
		await trigger(`RAISE EXCEPTION 'refused: %', NEW.payload`);
		expect(await failureOf(open())).toMatchObject({ kind: 'unexpected', sqlState: 'P0001' });
		expect(await rows()).toBe(1);
	});

	test('has a trigger that fails for one item: the others are claimed', async () => {
		await makeTable();
		await trigger(`IF NEW.source = 'unwanted' THEN RAISE EXCEPTION 'no'; END IF; RETURN NEW`);
		const requests = [aRequest(), aRequest({ identity: anIdentity({ source: 'unwanted' }) }), aRequest()];
		expect((await open().claim('claim', anOwner(), requests)).map(inShort)).toEqual(['new first_delivery', 'error unexpected', 'new first_delivery']);
	});

	async function trigger(body: string): Promise<void> {
		await database.query(`CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body}; END $$`);
		await database.query('CREATE TRIGGER odd BEFORE INSERT ON idempotent_claims FOR EACH ROW EXECUTE FUNCTION odd()');
	}
});

describe('what counts as a refusal', () => {
	test.each([
		['a constraint', { code: '23505', severity: 'ERROR' }, true],
		['a lock that was not to be had', { code: '55P03', severity: 'ERROR' }, true],
		['the end of the session', { code: '57P01', severity: 'FATAL' }, false],
		// A server that speaks another language translates the severity, never the SQLSTATE.
		['the end of the session in Russian', { code: '57P01', severity: 'ВАЖНО' }, false],
		['a crash of another session in Russian', { code: '57P02', severity: 'ВНИМАНИЕ' }, false],
		['an error in Russian', { code: '23505', severity: 'ОШИБКА' }, true],
		['a pooler that lost its server', { code: '08P01', severity: 'FATAL' }, false],
		['a line that broke', { code: 'ECONNRESET' }, false],
		['a pipe that broke, whose code has five letters', { code: 'EPIPE' }, false],
		['a timeout of the driver', new Error('Query read timeout'), false],
	])('%s: %s', (_what, failure, refusal) => {
		expect(isRefusal(failure)).toBe(refusal);
	});

	// Not on a server: the driver leaves the connection behind until the server's authentication_timeout.
	test('an empty password where the server wants one (SCRAM) is a refused login', async () => {
		const sasl: Sasl = jest.requireActual('pg/lib/crypto/sasl');
		const failure: unknown = await sasl.continueSession(sasl.startSession(['SCRAM-SHA-256']), null, '').catch((error: unknown) => error);
		expect(String(failure)).toContain('password must be a string');
		expect(connectionFailure(failure, settingsFor(database))).toMatchObject({ kind: 'store_denied' });
	});

	test('several addresses of one name, none of them reachable', () => {
		const failure = new AggregateError([Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }), new Error('other')]);
		expect(connectionFailure(failure, settingsFor(database))).toMatchObject({ kind: 'store_unreachable', message: expect.stringContaining('nothing listens there') as string });
	});
});
