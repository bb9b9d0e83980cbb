import { setImmediate } from 'node:timers/promises';
import { Client } from 'pg';
import type { Proxy } from '../support/proxy';
import { LEASE_OVER } from '../support/timePassed';
import type { Workbench } from '../support/workbench';
import { addGuest, claim, claimInPeace, complete, GUEST_PASSWORD, openRig, type Credential } from './support/rig';

/**
 * The store cannot be used for a while. Meanwhile every item is an Operational Error that says 503, nothing is written,
 * and nothing is called recorded; afterwards the next delivery works, in the same process and with the same pool.
 */

let workbench: Workbench;
let proxy: Proxy;
let close: () => Promise<void>;
/** A login without privileges beyond its own, which a test may hinder. */
const GUEST = `guest_${process.pid}`;
let store: Credential;

beforeAll(async () => {
	({ workbench, proxy, close } = await openRig(500));
	store = workbench.credential({ port: proxy.port, ...(await addGuest(workbench, GUEST)), timeoutMs: 500 });
});
afterEach(async () => await workbench.clear());
afterAll(async () => {
	await sql(`DROP OWNED BY ${GUEST}`);
	await sql(`DROP ROLE ${GUEST}`);
	await close();
});

/** What cannot be done from inside the database. */
async function fromOutside(statement: string): Promise<void> {
	const client = new Client({ ...workbench.database, database: 'postgres' });
	await client.connect();
	await client.query(statement);
	await client.end();
}
const sql = async (statement: string) => void (await workbench.database.query(statement));
/** Ends the guest's sessions, and returns when this process knows that their lines are gone. */
async function endSessions(): Promise<void> {
	await sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${GUEST}'`);
	while (proxy.open > 0) await setImmediate();
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
	/** The kind that the items say, and the server's SQLSTATE. */
	says: string;
}

const OUTAGES: Record<string, Outage> = {
	'nothing listens': { begin: async () => await proxy.refuse(), end: async () => await proxy.forward(), says: 'store_unreachable' },
	'new lines are accepted, and nothing is answered': { begin: async () => (await endSessions(), proxy.goSilent()), end: async () => await proxy.forward(), says: 'store_unreachable' },
	'the database accepts no connections': {
		begin: async () => (await fromOutside(`ALTER DATABASE ${workbench.database.database} ALLOW_CONNECTIONS false`), await endSessions()),
		end: async () => await fromOutside(`ALTER DATABASE ${workbench.database.database} ALLOW_CONNECTIONS true`),
		says: 'store_unreachable 55000',
	},
	'no connection to spare for the user': { begin: forGuest('CONNECTION LIMIT 0'), end: forGuest('CONNECTION LIMIT -1'), says: 'store_busy 53300' },
	'the password is another': { begin: forGuest(`PASSWORD 'another'`), end: forGuest(`PASSWORD '${GUEST_PASSWORD}'`), says: 'store_denied 28P01' },
	'the login is taken away': { begin: forGuest('NOLOGIN'), end: forGuest('LOGIN'), says: 'store_denied 28000' },
	'the server is read-only': { begin: forGuest('SET default_transaction_read_only = on'), end: forGuest('RESET default_transaction_read_only'), says: 'store_misconfigured 25006' },
	'the rights are taken away': {
		begin: async () => await sql(`REVOKE ALL ON idempotent_claims FROM ${GUEST}`),
		end: async () => await sql(`GRANT SELECT, INSERT, UPDATE ON idempotent_claims TO ${GUEST}`),
		says: 'store_denied 42501',
	},
	'the disk is full (a trigger says 53100)': { begin: failingWith('INSERT OR UPDATE', '53100'), end: mendTrigger, says: 'store_busy 53100' },
	'the server is out of memory (a trigger says 53200)': { begin: failingWith('INSERT OR UPDATE', '53200'), end: mendTrigger, says: 'store_busy 53200' },
	'every statement loses against others (a trigger says 40001)': { begin: failingWith('INSERT OR UPDATE', '40001'), end: mendTrigger, says: 'store_busy 40001' },
	'every statement is a deadlock (a trigger says 40P01)': { begin: failingWith('INSERT OR UPDATE', '40P01'), end: mendTrigger, says: 'store_busy 40P01' },
	'every statement is cancelled (a trigger says 57014)': { begin: failingWith('INSERT OR UPDATE', '57014'), end: mendTrigger, says: 'store_busy 57014' },
	'the disk fails (a trigger says 58030)': { begin: failingWith('INSERT OR UPDATE', '58030'), end: mendTrigger, says: 'unexpected 58030' },
	'the table is renamed': {
		begin: async () => await sql('ALTER TABLE idempotent_claims RENAME TO elsewhere'),
		end: async () => await sql('ALTER TABLE elsewhere RENAME TO idempotent_claims'),
		says: 'store_misconfigured 42P01',
	},
};

test.each(Object.entries(OUTAGES))('%s: no claim, no outcome, and both work afterwards', async (_name, { begin, end, says }) => {
	const handle = await claimInPeace(workbench, 'acted');
	expect(await claim(workbench, store, ['before'])).toEqual(['new']);
	const rows = await workbench.rows();

	const said: string[] = [];
	await begin();
	try {
		said.push(...(await claim(workbench, store, ['a'])), ...(await claim(workbench, store, ['a', 'before', 'b'])), await complete(workbench, store, handle, 'lead-1'));
	} finally {
		await end();
	}
	expect(said).toEqual(said.map(() => `error ${says} 503`));
	expect(await workbench.rows()).toEqual(rows);

	expect(await claim(workbench, store, ['a', 'before', 'b'])).toEqual(['new', 'duplicate in_progress', 'new']);
	expect(await complete(workbench, store, handle, 'lead-1')).toBe('recorded');
	expect(await workbench.row('acted')).toMatchObject({ state: 'completed', outcome_reference: 'lead-1' });
});

test.each(['repeatable read', 'serializable'])('%s as the default of the role: claims, duplicates, takeovers, outcomes and races, as ever', async (level) => {
	await forGuest(`SET default_transaction_isolation = '${level}'`)();
	const atOnce = async <T>(work: () => Promise<T>) => await Promise.all(Array.from({ length: 10 }, work));
	// Races may take their time here; every answer must be right.
	const patient = { ...store, timeoutMs: 20_000 };
	try {
		const handle = await claimInPeace(workbench, 'acted');
		expect(await claim(workbench, patient, ['a', 'acted', 'b'])).toEqual(['new', 'duplicate in_progress', 'new']);
		expect(await complete(workbench, patient, handle, 'lead-1')).toBe('recorded');

		const first = (await atOnce(async () => await claim(workbench, patient, ['raced']))).flat();
		expect(first.sort()).toEqual([...Array<string>(9).fill('duplicate in_progress'), 'new']);

		await claimInPeace(workbench, 'old', { options: { whenLeaseExpires: 'takeOver' } });
		await workbench.change('old', LEASE_OVER);
		const takeover = (await atOnce(async () => await claim(workbench, patient, ['old']))).flat();
		expect(takeover.sort()).toEqual([...Array<string>(9).fill('duplicate in_progress'), 'new']);
		expect(await workbench.row('old')).toMatchObject({ version: 2, attempt: 2 });

		const another = await claimInPeace(workbench, 'acted at once');
		expect(await atOnce(async () => await complete(workbench, patient, another, 'lead-2'))).toEqual(Array(10).fill('recorded'));
		expect((await workbench.row('acted at once')).history).toHaveLength(2);
	} finally {
		await forGuest('RESET default_transaction_isolation')();
	}
});

test('idle sessions are ended between two runs: the next one opens another line', async () => {
	const handle = await claimInPeace(workbench, 'acted');
	expect(await claim(workbench, store, ['a'])).toEqual(['new']);
	await endSessions();
	expect(await claim(workbench, store, ['a', 'b'])).toEqual(['duplicate in_progress', 'new']);
	await endSessions();
	expect(await complete(workbench, store, handle, 'lead-1')).toBe('recorded');
});
