import { Client } from 'pg';
import { LEASE_OVER } from '../support/timePassed';
import { Workbench } from '../support/workbench';
import { addGuest, claim, claimInPeace, complete, type Credential } from './support/rig';

/** Something happens to a statement that waits for a row which another session holds. */

let workbench: Workbench;
let store: Credential;
let holder: Client;
/** The owner of the claim that is held. */
let handle: string;
const GUEST = `held_${process.pid}`;

beforeAll(async () => {
	workbench = await Workbench.open();
	await claimInPeace(workbench, 'first of all');
	const guest = await addGuest(workbench, GUEST);
	await sql(`CREATE ROLE ${GUEST}_hurried LOGIN PASSWORD '${guest.password}' IN ROLE ${GUEST}`);
	await sql(`ALTER ROLE ${GUEST}_hurried SET statement_timeout = '20ms'`);
	// Long enough that nobody gives up by itself.
	store = workbench.credential({ ...guest, timeoutMs: 30_000 });
});
beforeEach(async () => {
	handle = await claimInPeace(workbench, 'held', { options: { whenLeaseExpires: 'takeOver' } });
	await workbench.change('held', LEASE_OVER);
	holder = new Client({ ...workbench.database });
	await holder.connect();
	await holder.query('BEGIN');
	await holder.query(`SELECT FROM idempotent_claims WHERE delivery_id = 'held' FOR UPDATE`);
});
afterEach(async () => {
	await holder.end();
	await workbench.clear();
});
afterAll(async () => {
	await sql(`DROP OWNED BY ${GUEST}`);
	await sql(`DROP ROLE ${GUEST}_hurried`);
	await sql(`DROP ROLE ${GUEST}`);
	await workbench.close();
});

const sql = async (statement: string) => void (await workbench.database.query(statement));
const WAITING = `FROM pg_stat_activity WHERE usename = '${GUEST}' AND wait_event_type = 'Lock'`;
const waiting = async () => {
	while ((await workbench.database.query(`SELECT 1 ${WAITING}`)).length === 0);
};
const letGo = async () => void (await holder.query('ROLLBACK'));

interface Hindrance {
	/** What the credential is while it lasts, if not the usual one. */
	credential?: () => Credential;
	hinder: () => Promise<void>;
	/** What the items say, if not what they would have said without it. */
	says?: string;
}

const HINDRANCES: Record<string, Hindrance> = {
	'its session is ended': { hinder: async () => (await waiting(), await sql(`SELECT pg_terminate_backend(pid) ${WAITING}`), await letGo()) },
	'it is cancelled by somebody': { hinder: async () => (await waiting(), await sql(`SELECT pg_cancel_backend(pid) ${WAITING}`)), says: 'error store_busy 57014 503' },
	'the server cancels it by the statement_timeout of the role': {
		credential: () => ({ ...store, user: `${GUEST}_hurried` }),
		hinder: async () => await Promise.resolve(),
		says: 'error store_busy 57014 503',
	},
	'the holder lets go in time': { hinder: async () => (await waiting(), await letGo()) },
	'the holder does not let go': { credential: () => ({ ...store, timeoutMs: 300 }), hinder: async () => await Promise.resolve(), says: 'error store_busy 55P03 503' },
};

describe.each(Object.entries(HINDRANCES))('%s', (_name, { credential = () => store, hinder, says }) => {
	test('a takeover', async () => {
		const [said] = await Promise.all([claim(workbench, credential(), ['held']), hinder()]);
		expect(said).toEqual([says ?? 'new']);
		await letGo();
		expect(await workbench.row('held')).toMatchObject(says ? { state: 'processing', version: 1 } : { state: 'processing', version: 2 });
		expect(await claim(workbench, store, ['a', 'held', 'b'])).toEqual(['new', says ? 'new' : 'duplicate in_progress', 'new']);
	});

	test('an outcome', async () => {
		const [said] = await Promise.all([complete(workbench, credential(), handle, 'lead-1'), hinder()]);
		expect(said).toBe(says ?? 'recorded');
		await letGo();
		expect(await workbench.row('held')).toMatchObject(says ? { state: 'processing', outcome_reference: null } : { state: 'completed', outcome_reference: 'lead-1' });
		expect(await complete(workbench, store, handle, 'lead-1')).toBe('recorded');
		expect((await workbench.row('held')).history).toHaveLength(2);
	});
});

test('its session is ended while it stands for a batch: each item has its verdict all the same', async () => {
	const said = claim(workbench, store, ['a', 'held', 'b']);
	await waiting();
	await sql(`SELECT pg_terminate_backend(pid) ${WAITING}`);
	await letGo();
	expect(await said).toEqual(['new', 'new', 'new']);
	expect(await workbench.row('held')).toMatchObject({ version: 2, attempt: 2 });
});
