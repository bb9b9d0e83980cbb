import type { ICredentialTestFunctions, IDataObject } from 'n8n-workflow';
import { testClaimStoreCredential } from '../../nodes/shared/credentialTest';
import { startProxy } from '../support/proxy';
import { claimsOf, deliveries, guarded, NEW_CLAIM, OPERATIONAL_ERROR, Workbench, type Claim } from '../support/workbench';
import { mostSessionsDuring, sessions, until } from './support/sessions';

/** How many sessions the package has at the server: counted there, while many executions of one process share credentials. */

jest.setTimeout(180_000);

/** The pool lets an idle connection go after ten. */
const SECONDS_UNTIL_IDLE_ONES_ARE_GONE = 20;

let workbench: Workbench;
beforeEach(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.close());

/** One execution for these deliveries; their claims, whichever output they left by. */
async function execute(ids: string[], credential: IDataObject): Promise<Claim[]> {
	const run = await workbench.run(guarded(), { items: deliveries(...ids), credentials: { store: workbench.credential(credential) } });
	return [NEW_CLAIM, 1, OPERATIONAL_ERROR].flatMap((output) => claimsOf(run, 'Claim', output));
}

async function deliver(id: string, credential: IDataObject): Promise<Claim> {
	return (await execute([id], credential))[0];
}

/** Executions with two deliveries each: single ones would share statements, and need few connections. */
async function deliverAll(prefix: string, count: number, credential: IDataObject): Promise<Claim[]> {
	return (await Promise.all(Array.from({ length: count }, async (_, index) => await execute([`${prefix}-${index}a`, `${prefix}-${index}b`], credential)))).flat();
}

const statuses = (claims: Claim[]) => [...new Set(claims.map(({ status, error }) => (error ? error.message : status)))];

test('200 executions at once on each of three credentials: never more sessions than each allows, none when all is idle', async () => {
	await deliver('makes the table', {});
	const limits: Record<string, number> = { first_role: 2, second_role: 5, third_role: 10 };
	for (const role of Object.keys(limits)) {
		const name = `${role}_${workbench.database.database}`;
		await workbench.database.query(`CREATE ROLE ${name} LOGIN PASSWORD 'roles'`);
		await workbench.database.query(`GRANT SELECT, INSERT, UPDATE ON idempotent_claims TO ${name}`);
	}
	try {
		const work = Promise.all(
			Object.entries(limits).map(async ([role, maxConnections]) => await deliverAll(role, 200, { user: `${role}_${workbench.database.database}`, password: 'roles', maxConnections, timeoutMs: 60_000 })),
		);
		const { result, most } = await mostSessionsDuring(workbench.database, work);
		expect(result.map(statuses)).toEqual([['new'], ['new'], ['new']]);
		for (const [role, limit] of Object.entries(limits)) {
			const seen = most[`${role}_${workbench.database.database}`];
			expect(seen).toBeGreaterThan(0);
			expect(seen).toBeLessThanOrEqual(limit);
		}
		await until('all idle sessions have gone', SECONDS_UNTIL_IDLE_ONES_ARE_GONE, async () => (await sessions(workbench.database)) === 0);
	} finally {
		for (const role of Object.keys(limits)) {
			const name = `${role}_${workbench.database.database}`;
			await workbench.database.query(`DROP OWNED BY ${name}`);
			await workbench.database.query(`DROP ROLE ${name}`);
		}
	}
});

test('a credential that is edited while it is used: what is in flight ends well, and the old sessions go although the new ones are busy', async () => {
	const [before, after] = [{ maxConnections: 4, timeoutMs: 30_000 }, { maxConnections: 3, timeoutMs: 40_000 }];
	const old = deliverAll('before', 50, before);
	await until('the old pool has sessions', 20, async () => (await sessions(workbench.database)) > 0);
	expect(statuses(await deliverAll('after', 50, after))).toEqual(['new']);
	expect(statuses(await old)).toEqual(['new']);
	expect(await sessions(workbench.database)).toBeLessThanOrEqual(before.maxConnections + after.maxConnections);

	// Only the new one is used from now on.
	let delivered = 0;
	await until('only sessions of the edited credential are left', SECONDS_UNTIL_IDLE_ONES_ARE_GONE, async () => {
		expect((await deliver(`later-${delivered++}`, after)).status).toBe('new');
		return (await sessions(workbench.database)) <= after.maxConnections;
	});
	expect(await sessions(workbench.database)).toBeGreaterThan(0);
	await until('those have gone too', SECONDS_UNTIL_IDLE_ONES_ARE_GONE, async () => (await sessions(workbench.database)) === 0);
});

test('the credential is tested while 50 claims are in flight: one session more, for the test alone, and every claim succeeds', async () => {
	const line = await startProxy(workbench.database);
	const credential = { port: line.port, maxConnections: 5, timeoutMs: 30_000 };
	await deliver('makes the table', credential);

	// Nobody can insert: all 50 are under way while the credential is tested.
	const holder = await workbench.transaction();
	await holder.query('LOCK TABLE idempotent_claims IN SHARE MODE');
	const claims = deliverAll('in-flight', 50, credential);
	const waiting = async () => await sessions(workbench.database, `wait_event_type = 'Lock'`);
	await until('every connection of the pool waits for the table', 20, async () => (await waiting()) === 5);
	expect(line.accepted).toBe(5);

	const verdict = await testClaimStoreCredential.call({} as ICredentialTestFunctions, { id: 'store', name: 'store', type: 'claimStoreApi', data: workbench.credential(credential) as never });
	expect(verdict.status).toBe('OK');
	expect(line.accepted).toBe(6);
	await until('the session of the test has gone', 20, async () => (await sessions(workbench.database)) === 5);
	expect(await waiting()).toBe(5);

	await holder.rollBack();
	expect(statuses(await claims)).toEqual(['new']);
	expect(line.accepted).toBe(6);
	await line.close();
});

test('a credential test that fails in mid-flight hurts no claim either', async () => {
	const credential = { maxConnections: 5, timeoutMs: 20_000 };
	const claims = deliverAll('in-flight', 50, credential);
	const wrong = { ...workbench.credential(credential), password: 'wrong' };
	const verdict = await testClaimStoreCredential.call({} as ICredentialTestFunctions, { id: 'store', name: 'store', type: 'claimStoreApi', data: wrong as never });
	expect(verdict.status).toBe('Error');
	expect(verdict.message).not.toContain('wrong');
	expect(statuses(await claims)).toEqual(['new']);
	expect(await sessions(workbench.database)).toBeLessThanOrEqual(5);
});
