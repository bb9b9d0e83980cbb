import { setImmediate } from 'node:timers/promises';
import { Client } from 'pg';
import { startOwnPostgres, type OwnPostgres } from '../support/ownPostgres';
import { startProxy, type Proxy } from '../support/proxy';
import { Workbench } from '../support/workbench';
import { claim, claimInPeace, complete, type Credential } from './support/rig';

/**
 * The store cannot be used for a while. Meanwhile every item is an Operational Error that says 503, nothing is written,
 * and nothing is called recorded; afterwards the next delivery works, in the same process and with the same pool.
 */

let workbench: Workbench;
let proxy: Proxy;
/** A login without privileges beyond its own, which a test may hinder. */
const GUEST = `guest_${process.pid}`;
let store: Credential;

beforeAll(async () => {
	workbench = await Workbench.open();
	proxy = await startProxy(workbench.database);
	await claimInPeace(workbench, 'first of all');
	await workbench.database.query(`CREATE ROLE ${GUEST} LOGIN PASSWORD 'guest-only'`);
	await workbench.database.query(`GRANT SELECT, INSERT, UPDATE ON idempotent_claims TO ${GUEST}`);
	store = workbench.credential({ port: proxy.port, user: GUEST, password: 'guest-only', timeoutMs: 500 });
});
afterEach(async () => await workbench.clear());
afterAll(async () => {
	await proxy.close();
	await workbench.database.query(`DROP OWNED BY ${GUEST}`);
	await workbench.database.query(`DROP ROLE ${GUEST}`);
	await workbench.close();
});

const sql = async (statement: string) => void (await workbench.database.query(statement));
/** Ends the guest's sessions, and returns when this process knows that their lines are gone. */
async function endSessions(): Promise<void> {
	await sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${GUEST}'`);
	while (proxy.open > 0) await setImmediate();
	await sql('SELECT 1');
}
/** A setting of the guest's later sessions; those that are open end. */
const forGuest = (setting: string) => async () => {
	await sql(`ALTER ROLE ${GUEST} ${setting}`);
	await endSessions();
};
const failingWith = (event: string, sqlState: string) => async () => {
	await sql(`CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '${sqlState}'; END $$`);
	await sql(`CREATE TRIGGER failing BEFORE ${event} ON idempotent_claims FOR EACH ROW EXECUTE FUNCTION fail()`);
};
const mendTrigger = async () => await sql('DROP TRIGGER failing ON idempotent_claims');

interface Outage {
	begin: () => Promise<void> | void;
	end: () => Promise<void> | void;
	/** The kind that the items say; several where it depends on whether a line was open. */
	says: string;
}

const OUTAGES: Record<string, Outage> = {
	'nothing listens': { begin: async () => (await proxy.refuse(), await sql('SELECT 1')), end: async () => await proxy.forward(), says: 'store_unreachable' },
	'the network is silent': { begin: () => proxy.goSilent(), end: async () => (proxy.cutAll(), await proxy.forward()), says: 'outcome_unknown|store_unreachable' },
	'no connection to spare': { begin: forGuest('CONNECTION LIMIT 0'), end: forGuest('CONNECTION LIMIT -1'), says: 'store_busy' },
	'the login is refused': { begin: forGuest(`PASSWORD 'another'`), end: forGuest(`PASSWORD 'guest-only'`), says: 'store_denied' },
	'the server is read-only': { begin: forGuest('SET default_transaction_read_only = on'), end: forGuest('RESET default_transaction_read_only'), says: 'store_misconfigured' },
	'the rights are taken away': {
		begin: async () => await sql(`REVOKE ALL ON idempotent_claims FROM ${GUEST}`),
		end: async () => await sql(`GRANT SELECT, INSERT, UPDATE ON idempotent_claims TO ${GUEST}`),
		says: 'store_denied',
	},
	'the disk is full (the server says 53100)': { begin: failingWith('INSERT OR UPDATE', '53100'), end: mendTrigger, says: 'store_busy' },
	'the server is out of memory (it says 53200)': { begin: failingWith('INSERT OR UPDATE', '53200'), end: mendTrigger, says: 'store_busy' },
	'every commit loses against others (40001)': { begin: failingWith('INSERT OR UPDATE', '40001'), end: mendTrigger, says: 'store_busy' },
	'the table is renamed': {
		begin: async () => await sql('ALTER TABLE idempotent_claims RENAME TO elsewhere'),
		end: async () => await sql('ALTER TABLE elsewhere RENAME TO idempotent_claims'),
		says: 'store_misconfigured',
	},
};

describe.each(Object.entries(OUTAGES))('%s', (_name, { begin, end, says }) => {
	test('no claim, no outcome, and both work afterwards', async () => {
		const handle = await claimInPeace(workbench, 'acted');
		expect(await claim(workbench, store, ['before'])).toEqual(['new']);
		const rows = await workbench.rows();

		await begin();
		try {
			const said = await claim(workbench, store, ['a', 'b', 'c']);
			for (const each of said) expect(each).toMatch(new RegExp(`^error (${says}) 503$`));
			expect(await complete(workbench, store, handle, 'lead-1')).toMatch(new RegExp(`^error (${says})$`));
		} finally {
			await end();
		}
		expect(await workbench.rows()).toEqual(rows);

		expect(await claim(workbench, store, ['a', 'before', 'b', 'c'])).toEqual(['new', 'duplicate in_progress', 'new', 'new']);
		expect(await complete(workbench, store, handle, 'lead-1')).toBe('recorded');
		expect(await workbench.row('acted')).toMatchObject({ state: 'completed', outcome_reference: 'lead-1' });
	});
});

describe('a statement that waits for a key which somebody holds', () => {
	let holder: Client;
	beforeEach(async () => {
		await claim(workbench, store, ['held']);
		holder = new Client({ ...workbench.database });
		await holder.connect();
		await holder.query('BEGIN');
		await holder.query(`UPDATE idempotent_claims SET updated_at = now() WHERE delivery_id = 'held'`);
	});
	afterEach(async () => await holder.end());

	const waiting = async () => {
		while ((await workbench.database.query(`SELECT 1 FROM pg_stat_activity WHERE usename = '${GUEST}' AND wait_event_type = 'Lock'`)).length === 0);
	};

	test('its session is ended: sent again, and the neighbours are claimed', async () => {
		const patient = { ...store, timeoutMs: 20_000 };
		const said = claim(workbench, patient, ['a', 'held']);
		await waiting();
		await sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${GUEST}'`);
		await holder.query('ROLLBACK');
		expect(await said).toEqual(['new', 'duplicate in_progress']);
	});

	test('it is cancelled by somebody: that item is busy, and the neighbours are claimed', async () => {
		const patient = { ...store, timeoutMs: 20_000 };
		const said = claim(workbench, patient, ['held']);
		await waiting();
		await sql(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = '${GUEST}'`);
		expect(await said).toEqual(['error store_busy 503']);
		await holder.query('ROLLBACK');
		expect(await claim(workbench, patient, ['a', 'held'])).toEqual(['new', 'duplicate in_progress']);
	});

	test('the server cancels it by its own statement_timeout: that item is busy', async () => {
		await forGuest(`SET statement_timeout = '20ms'`)();
		expect(await claim(workbench, store, ['held'])).toEqual(['error store_busy 503']);
		await forGuest('RESET statement_timeout')();
		await holder.query('ROLLBACK');
		expect(await claim(workbench, store, ['held'])).toEqual(['duplicate in_progress']);
	});
});

test.each(['repeatable read', 'serializable'])('%s as the default of the role: claims, duplicates, takeovers, outcomes and a race, as ever', async (level) => {
	await forGuest(`SET default_transaction_isolation = '${level}'`)();
	try {
		const handle = await claimInPeace(workbench, 'acted');
		expect(await claim(workbench, store, ['a', 'acted', 'b'])).toEqual(['new', 'duplicate in_progress', 'new']);
		expect(await complete(workbench, store, handle, 'lead-1')).toBe('recorded');
		const raced = await Promise.all(Array.from({ length: 10 }, async () => (await claim(workbench, store, ['raced']))[0]));
		expect(raced.sort()).toEqual([...Array<string>(9).fill('duplicate in_progress'), 'new']);
	} finally {
		await forGuest('RESET default_transaction_isolation')();
	}
});

test('idle sessions are ended between two claims: the next one opens another', async () => {
	expect(await claim(workbench, store, ['a'])).toEqual(['new']);
	await endSessions();
	expect(await claim(workbench, store, ['a', 'b'])).toEqual(['duplicate in_progress', 'new']);
});

describe('a server of its own', () => {
	let server: OwnPostgres;
	let own: Workbench;
	beforeAll(async () => {
		server = await startOwnPostgres();
		own = await Workbench.open({}, server);
		await claimInPeace(own, 'first of all');
	});
	afterAll(async () => await server.remove());

	test.each(['stop', 'kill'] as const)('%s: unreachable meanwhile; what was confirmed is there afterwards', async (how) => {
		const short = own.credential({ timeoutMs: 1000 });
		const handle = await claimInPeace(own, `acted before ${how}`);
		expect(await claim(own, short, [`before ${how}`])).toEqual(['new']);
		await server[how]();
		const said = [...(await claim(own, short, ['a', 'b'])), ...(await claim(own, short, ['a', 'b']))];
		const completed = await complete(own, short, handle, 'lead-1');
		await server.start();
		// The first claim may still meet a line that was open.
		for (const each of said) expect(each).toMatch(/^error (store_unreachable|outcome_unknown) 503$/);
		expect(said.slice(2)).toEqual(['error store_unreachable 503', 'error store_unreachable 503']);
		expect(completed).toBe('error store_unreachable');
		expect(await claim(own, short, [`before ${how}`, `after ${how}`])).toEqual(['duplicate in_progress', 'new']);
		expect(await complete(own, short, handle, 'lead-1')).toBe('recorded');
	});

	test.each(['stop', 'kill'] as const)('%s, and a start, while a statement waits: it is sent again and answered', async (how) => {
		const id = `held during ${how}`;
		await claimInPeace(own, id);
		const holder = new Client({ ...own.database });
		holder.on('error', () => undefined);
		await holder.connect();
		await holder.query('BEGIN');
		await holder.query('UPDATE idempotent_claims SET updated_at = now() WHERE delivery_id = $1', [id]);
		const said = claim(own, own.credential({ timeoutMs: 20_000 }), [id, `beside ${how}`]);
		while ((await own.database.query(`SELECT 1 FROM pg_stat_activity WHERE application_name = 'n8n-nodes-idempotent-claim' AND wait_event_type = 'Lock'`)).length === 0);
		await server[how]();
		await server.start();
		expect(await said).toEqual(['duplicate in_progress', 'new']);
	});
});
