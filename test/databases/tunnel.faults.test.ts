import { Container } from '@n8n/di';
import { SSHClientsManager } from 'n8n-core/dist/execution-engine/ssh-clients-manager';
import type { IDataObject } from 'n8n-workflow';
import { readHandle } from '../../store/handle';
import { sessions, until } from '../process/support/sessions';
import { startOwnPostgres } from '../support/ownPostgres';
import { startProxy, type Proxy } from '../support/proxy';
import type { SshServer } from '../support/sshServer';
import { claimsOf, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, Workbench, type Claim } from '../support/workbench';
import { startTunnelServer, testCredential, through } from './support/tunnels';

/** What breaks a tunnel, and that it is there again without anybody doing anything. What counts is the row, not only the answer. */

jest.setTimeout(120_000);

let workbench: Workbench;
let ssh: SshServer;
let proxy: Proxy;
beforeAll(async () => {
	workbench = await Workbench.open();
	proxy = await startProxy(workbench.database);
});
afterAll(async () => {
	await proxy?.close();
	await workbench?.close();
});
beforeEach(async () => {
	await workbench.clear();
	ssh = await startTunnelServer();
});
afterEach(async () => await ssh.close());

/** Eight seconds for each statement and connection: a fourth of it is waited for an SSH server that says nothing, twice. */
const TIMEOUT_MS = 8000;

/** An execution with one delivery; its claim, whichever output it left by. */
async function deliver(id: string, changes: IDataObject = {}): Promise<Claim> {
	const store = workbench.credential(through(ssh, { timeoutMs: TIMEOUT_MS, ...changes }));
	const run = await workbench.run(guarded(), { items: deliveries(id), credentials: { store } });
	const [claim] = [NEW_CLAIM, KNOWN_DUPLICATE, OPERATIONAL_ERROR].flatMap((output) => claimsOf(run, 'Claim', output));
	return claim;
}

/** The claim was new, and the one row that there is bears its token: no other ownership came in between. */
async function expectNewOnce(id: string, claim: Claim): Promise<void> {
	expect([claim.status, claim.reason, claim.error]).toEqual(['new', 'first_delivery', null]);
	expect(await workbench.row(id)).toMatchObject({ owner_token: readHandle(claim.handle).ownerToken, version: 1, attempt: 1, state: 'processing' });
	expect((await deliver(id)).status).toBe('duplicate');
}

/** Nobody can insert until it is released. */
async function holdTheTable(): Promise<() => Promise<void>> {
	const holder = await workbench.transaction();
	await holder.query('LOCK TABLE idempotent_claims IN SHARE MODE');
	return async () => await holder.rollBack();
}

const waiting = async () => await sessions(workbench.database, `wait_event_type = 'Lock'`);
const untilOneWaits = async () => await until('a claim waits for the table', 20, async () => (await waiting()) === 1);

describe('the tunnel is cut', () => {
	test('while it is idle', async () => {
		await deliver('d1');
		ssh.drop();
		await expectNewOnce('d2', await deliver('d2'));
		expect(ssh.accepted).toBe(2);
	});

	test('again and again', async () => {
		for (let round = 1; round <= 5; round++) {
			await expectNewOnce(`d${round}`, await deliver(`d${round}`));
			ssh.drop();
		}
		expect(ssh.accepted).toBe(5);
	});

	test('in the middle of a statement, which has not been carried out yet', async () => {
		await deliver('d1');
		const release = await holdTheTable();
		const claim = deliver('d2');
		await untilOneWaits();
		ssh.drop();
		await until('the claim is there again, through a new connection', 20, async () => ssh.accepted === 2);
		await release();
		await expectNewOnce('d2', await claim);
	});

	test('in the middle of a statement, which has been carried out: its own claim is recognised', async () => {
		const credential = { host: proxy.host, port: proxy.port };
		await deliver('d1', credential);
		const swallowed = proxy.swallowAnswerTo('INSERT INTO');
		const claim = deliver('d2', credential);
		await swallowed.happened;
		await until('the row is there', 20, async () => (await workbench.rows()).length === 2);
		ssh.drop();
		await expectNewOnce('d2', await claim);
		expect(ssh.accepted).toBe(2);
	});

	test('under fifty claims at once: each is new exactly once', async () => {
		await deliver('d0');
		const release = await holdTheTable();
		const ids = Array.from({ length: 50 }, (_, index) => `many-${index}`);
		const claims = Promise.all(ids.map(async (id) => await deliver(id, { maxConnections: 5, timeoutMs: 30_000 })));
		await until('several connections wait', 20, async () => (await waiting()) > 1);
		ssh.drop();
		await release();
		expect(new Set((await claims).map(({ status, error }) => error?.message ?? status))).toEqual(new Set(['new']));
		expect((await workbench.rows()).filter(({ version, attempt }) => version === 1 && attempt === 1)).toHaveLength(51);
		expect(ssh.accepted).toBe(2);
	});

	test('while nobody can log in any more: said, and over when the server lets people in again', async () => {
		await deliver('d1');
		ssh.refuseLogins(true);
		ssh.drop();
		await until('the client knows', 20, async () => ssh.open === 0);
		const { error } = await deliver('d2');
		expect(error).toMatchObject({ kind: expect.stringMatching(/store_denied|outcome_unknown/) as string });
		expect((await deliver('d3')).error).toMatchObject({ kind: 'store_denied', message: expect.stringContaining('refused the login of "tunnel"') as string });
		ssh.refuseLogins(false);
		expect((await deliver('d3')).status).toBe('new');
	});
});

describe('the tunnel falls silent and stays open', () => {
	test('with a line that is idle: the next claim loses its time for an answer, finds out, and is there again through a new one', async () => {
		const timeoutMs = 12_000;
		await deliver('d1', { timeoutMs });
		ssh.fallSilent();
		const since = performance.now();
		const claim = await deliver('d2', { timeoutMs });
		// The answer stays away: that alone is reason to ask whether anybody is there, which is waited for a fourth as long.
		expect(performance.now() - since).toBeLessThan(timeoutMs * 1.5);
		await expectNewOnce('d2', claim);
		expect(ssh.accepted).toBe(2);
	});

	test('with no line open: the next claim finds out within its time', async () => {
		await deliver('d1');
		ssh.fallSilent();
		const since = performance.now();
		const claim = await deliver('d2', { maxConnections: 3 });
		expect(performance.now() - since).toBeLessThan(TIMEOUT_MS);
		await expectNewOnce('d2', claim);
		expect(ssh.accepted).toBe(2);
	});

	test('in the middle of a statement', async () => {
		await deliver('d1');
		const release = await holdTheTable();
		const claim = deliver('d2');
		await untilOneWaits();
		ssh.fallSilent();
		await release();
		await expectNewOnce('d2', await claim);
		expect(ssh.accepted).toBe(2);
	});

	test('with less time than it takes to find out: the error says where it was waited, and the next claims work', async () => {
		await deliver('d1', { timeoutMs: 500 });
		ssh.fallSilent();
		const { error } = await deliver('d2', { timeoutMs: 500 });
		expect(error?.kind).toMatch(/^(store_unreachable|outcome_unknown)$/);
		await until('it is found out', 20, async () => (await deliver('d3', { timeoutMs: 500 })).status !== 'error');
		expect(ssh.accepted).toBe(2);
	});
});

describe('the database is what does not answer, and the SSH connection is left to others', () => {
	test('the SSH server waits for it: the error says so, and a line that comes too late is closed', async () => {
		await deliver('d1');
		ssh.forwarding('held');
		const late = { maxConnections: 2, timeoutMs: 3000 };
		const { error } = await deliver('d2', late);
		expect(error).toMatchObject({ kind: 'store_unreachable', message: expect.stringMatching(/The SSH server at .* could not reach PostgreSQL at .* in time/) as string, hint: expect.stringContaining('Host and Port are seen from the SSH server') as string });
		expect((await testCredential(workbench.credential(through(ssh, late)))).message).toContain(error?.message);
		ssh.forwarding('allowed');
		const { lines, opened } = ssh;
		const heldBack = ssh.letGo();
		expect(heldBack).toBeGreaterThan(0);
		await until('the late lines are open', 20, async () => ssh.opened === opened + heldBack);
		await until('they are closed', 20, async () => ssh.lines <= lines);
		expect((await deliver('d2', late)).status).toBe('new');
		expect(ssh.accepted).toBe(1);
	});

	test('nothing listens there: claims of another credential through the same SSH server go on', async () => {
		await deliver('d1');
		const release = await holdTheTable();
		const claim = deliver('d2');
		await untilOneWaits();
		expect((await deliver('d3', { port: 1 })).error).toMatchObject({ kind: 'store_unreachable', message: expect.stringContaining('cannot reach PostgreSQL') as string });
		await release();
		await expectNewOnce('d2', await claim);
		expect(ssh.accepted).toBe(1);
	});

	test('it is restarted', async () => {
		const postgres = await startOwnPostgres();
		const own = await Workbench.open({}, postgres);
		const runThere = async (id: string) => {
			const store = own.credential(through(ssh, { timeoutMs: TIMEOUT_MS }));
			const run = await own.run(guarded(), { items: deliveries(id), credentials: { store } });
			return [NEW_CLAIM, OPERATIONAL_ERROR].flatMap((output) => claimsOf(run, 'Claim', output))[0];
		};
		expect((await runThere('d1')).status).toBe('new');
		await postgres.kill();
		expect((await runThere('d2')).error?.kind).toMatch(/^(store_unreachable|outcome_unknown)$/);
		await postgres.start();
		await until('it has recovered', 30, async () => (await runThere('d3')).status === 'new');
		expect(ssh.accepted).toBe(1);
		await own.close();
		await postgres.remove();
	});
});

describe('n8n closes SSH connections that are not used', () => {
	interface Kept {
		lastUsed: Date;
	}
	const manager = () => Container.get(SSHClientsManager) as unknown as { clients: Map<string, Kept>; cleanupStaleConnections: () => void };
	const LONG_AGO = new Date(0);
	const kept = () => [...manager().clients.values()];
	/** As if all of them had been unused for long, and n8n looked after it now. */
	const age = () => kept().forEach((client) => (client.lastUsed = LONG_AGO));

	test('one with a statement under way is used, however long that takes', async () => {
		await deliver('d1');
		const release = await holdTheTable();
		const claim = deliver('d2');
		await untilOneWaits();
		age();
		await until('n8n is told that it is used', 20, async () => kept().some(({ lastUsed }) => lastUsed > LONG_AGO));
		manager().cleanupStaleConnections();
		await release();
		await expectNewOnce('d2', await claim);
		expect(ssh.accepted).toBe(1);
	});

	test('one without lines is closed, and the next claim opens a new one', async () => {
		await deliver('d1');
		await until('the pool has closed its line', 30, async () => ssh.lines === 0);
		age();
		manager().cleanupStaleConnections();
		await until('it is closed', 20, async () => ssh.open === 0);
		expect(kept()).toEqual([]);
		await expectNewOnce('d2', await deliver('d2'));
		expect(ssh.accepted).toBe(2);
	});

	test('one that is closed under a claim: the claim goes on through a new one', async () => {
		await deliver('d1');
		const release = await holdTheTable();
		const claim = deliver('d2');
		await untilOneWaits();
		age();
		manager().cleanupStaleConnections();
		await until('the claim is there again, through a new connection', 20, async () => ssh.accepted === 2);
		await release();
		await expectNewOnce('d2', await claim);
		expect(kept()).toHaveLength(1);
	});
});
