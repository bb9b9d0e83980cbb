import { generateKeyPairSync } from 'node:crypto';
import type { IDataObject } from 'n8n-workflow';
import { utils, type ParsedKey } from 'ssh2';
import { ClaimStore } from '../../nodes/ClaimStore/ClaimStore.node';
import { freePort } from '../support/freePort';
import { startProxy } from '../support/proxy';
import { ed25519Keys } from '../support/sshKeys';
import type { SshServer } from '../support/sshServer';
import { claimNode, claimsOf, CLAIM_RECOVERY_TRIGGER, completeNode, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, RECORDED, Workbench, type Claim } from '../support/workbench';
import { sessions, until } from '../process/support/sessions';
import { SSH_PASSWORD, startTunnelServer, testCredential, through, throughByKey } from './support/tunnels';

/** The nodes with a credential that leads through an SSH server: a real one, with n8n's own SSH client. */

const CLAIM_STORE = 'n8n-nodes-idempotent-claim.claimStore';
const PASSPHRASE = 'key-S3cret';

let workbench: Workbench;
let ssh: SshServer;
beforeAll(async () => {
	workbench = await Workbench.open({ [CLAIM_STORE]: new ClaimStore() });
	ssh = await startTunnelServer();
});
afterAll(async () => {
	await ssh?.close();
	await workbench?.close();
});
beforeEach(async () => await workbench.clear());

/** An execution with one delivery; its claim, whichever output it left by. */
async function deliver(id: string, credential: IDataObject): Promise<Claim> {
	const run = await workbench.run(guarded(), { items: deliveries(id), credentials: { store: workbench.credential(credential) } });
	const [claim] = [NEW_CLAIM, KNOWN_DUPLICATE, OPERATIONAL_ERROR].flatMap((output) => claimsOf(run, 'Claim', output));
	return claim;
}

const inShort = ({ status, reason, error }: Claim) => error?.message ?? `${status} ${reason}`;
const databasePlace = () => `${workbench.database.host}:${workbench.database.port}`;

describe('claims', () => {
	test('a delivery is claimed, completed and known again, and only the SSH server has asked the database', async () => {
		const asked = ssh.asked.length;
		const workflow = guarded(claimNode(), ['Claim -> Complete', 'Claim[1] -> Duplicate', 'Claim[2] -> Alarm']);
		workflow.nodes.Complete = completeNode({ outcomeReference: 'lead-1' });
		const options = { items: deliveries('d1'), credentials: { store: workbench.credential(through(ssh)) } };
		expect(claimsOf(await workbench.run(workflow, options), 'Complete', RECORDED)).toMatchObject([{ status: 'recorded', state: 'completed' }]);
		expect(await deliver('d1', through(ssh))).toMatchObject({ status: 'duplicate', reason: 'completed', outcome: { reference: 'lead-1' } });
		expect(await workbench.row('d1')).toMatchObject({ state: 'completed', version: 1 });
		expect(ssh.asked.length).toBeGreaterThan(asked);
		expect(new Set(ssh.asked)).toEqual(new Set([databasePlace()]));
		// Every session of the package is a line of the SSH server's.
		expect(await sessions(workbench.database)).toBe(ssh.lines);
	});

	test('by a connection string', async () => {
		const { host, port, user, password, database } = workbench.database;
		const connectionString = `postgresql://${user}:${encodeURIComponent(password)}@${host}:${port}/${database}`;
		const asked = ssh.asked.length;
		expect(inShort(await deliver('d1', { connectWith: 'connectionString', connectionString, host: 'nowhere.invalid', ...through(ssh), maxConnections: 2 }))).toBe('new first_delivery');
		expect(ssh.asked.slice(asked)).toEqual([databasePlace()]);
	});

	test('the host is looked up by the SSH server, not here', async () => {
		const asked = ssh.asked.length;
		await deliver('d1', through(ssh, { host: 'claims.internal.invalid' }));
		expect(ssh.asked.slice(asked)).toEqual([`claims.internal.invalid:${workbench.database.port}`]);
	});

	test('twenty items with a megabyte each come through, and come back', async () => {
		const text = Array.from({ length: 20 }, (_, index) => `${index}`.repeat(900_000 / `${index}`.length));
		const items = text.map((value, index) => ({ json: { id: `big-${index}`, text: value } }));
		const store = workbench.credential(through(ssh, { timeoutMs: 20_000 }));
		const run = await workbench.run(guarded(claimNode({ operation: 'receive' })), { items, credentials: { store } });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toHaveLength(20);
		const found = await workbench.run(
			{ nodes: { Start: { type: 'n8n-nodes-base.webhook' }, Store: { type: CLAIM_STORE, credential: 'store', parameters: { operation: 'getMany', returnAll: true, includePayload: true } } }, lines: ['Start -> Store'] },
			{ credentials: { store } },
		);
		const payloads = found.outputOf('Store').map(({ payload }) => payload as { id: string; text: string });
		expect(payloads).toHaveLength(20);
		for (const payload of payloads) expect(payload.text === text[Number(payload.id.slice('big-'.length))]).toBe(true);
	});
});

describe('one SSH connection', () => {
	test('for fifty executions at once on two tables, and for the credential test; the lines are as many as Maximum Connections allow', async () => {
		const own = await startTunnelServer();
		const credentials = [{ table: 'first_claims' }, { table: 'second_claims' }].map((changes) => through(own, { maxConnections: 3, timeoutMs: 20_000, ...changes }));
		const claims = Promise.all(Array.from({ length: 50 }, async (_, index) => await deliver(`d-${index}`, credentials[index % 2])));
		const verdict = await testCredential(workbench.credential(credentials[0]));
		expect(verdict.status).toBe('OK');
		expect(new Set((await claims).map(inShort))).toEqual(new Set(['new first_delivery']));
		expect(own.accepted).toBe(1);
		// The credential test's own session has gone; the others wait for more work.
		await until('the test has closed its line', 20, async () => own.lines <= 6);
		await own.close();
	});

	test('and another for another user of the same SSH server', async () => {
		await deliver('d1', through(ssh));
		const { accepted } = ssh;
		expect(inShort(await deliver('d2', throughByKey(ssh)))).toBe('new first_delivery');
		expect(ssh.accepted).toBe(accepted + 1);
	});
});

describe('every node', () => {
	test('the Claim Recovery Trigger, to which n8n gives no SSH client', async () => {
		await workbench.run(guarded(claimNode({ operation: 'receive' })), { items: deliveries('d1') });
		const asked = ssh.asked.length;
		const parameters = { pollTimes: { item: [{ mode: 'everyMinute' }] }, provider: 'custom', source: 'shop', action: 'lead' };
		const workflow = { nodes: { Trigger: { type: CLAIM_RECOVERY_TRIGGER, credential: 'store', parameters }, Action: { type: 'n8n-nodes-base.noOp' } }, lines: ['Trigger -> Action'] };
		const publication = await workbench.publish(workflow, { credentials: { store: workbench.credential(through(ssh, { maxConnections: 4 })) } });
		const executions = await publication.executions();
		await publication.unpublish();
		expect(publication.failures).toEqual([]);
		expect(executions.flatMap((execution) => claimsOf(execution, 'Trigger', 0))).toMatchObject([{ deliveryId: 'd1', status: 'new' }]);
		expect(ssh.asked.length).toBeGreaterThan(asked);
	});

	test('the Claim Store, its check with the self-test included', async () => {
		const workflow = { nodes: { Start: { type: 'n8n-nodes-base.webhook' }, Store: { type: CLAIM_STORE, credential: 'store', parameters: { operation: 'check', selfTest: true } } }, lines: ['Start -> Store'] };
		await deliver('d1', through(ssh));
		const { accepted } = ssh;
		const run = await workbench.run(workflow, { credentials: { store: workbench.credential(through(ssh, { timeoutMs: 20_000 })) } });
		expect(run.outputOf('Store')).toMatchObject([{ ok: true, problems: [], selfTest: { passed: true, newClaims: 1, duplicates: 99 } }]);
		expect(ssh.accepted).toBe(accepted);
	});
});

describe('login by key', () => {
	const openSsh = ed25519Keys();
	const protectedKey = ed25519Keys({ passphrase: PASSPHRASE, cipher: 'aes256-cbc', rounds: 2 });
	const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
	const rsaPem = rsa.privateKey.export({ type: 'pkcs1', format: 'pem' }) as string;
	const protectedPem = rsa.privateKey.export({ type: 'pkcs1', format: 'pem', cipher: 'aes-128-cbc', passphrase: PASSPHRASE }) as string;
	const publicOf = (key: string, passphrase?: string) => {
		const parsed = utils.parseKey(key, passphrase);
		if (parsed instanceof Error) throw parsed;
		const first: ParsedKey = Array.isArray(parsed) ? (parsed as ParsedKey[])[0] : parsed;
		return `${first.type} ${first.getPublicSSH().toString('base64')}`;
	};

	test.each<[string, string, string?]>([
		["in OpenSSH's form", openSsh.private],
		["in OpenSSH's form, with a passphrase", protectedKey.private, PASSPHRASE],
		["in OpenSSH's form, in one line", openSsh.private.trim().replace(/\n/g, ' ')],
		["in OpenSSH's form, with no line ends at all", openSsh.private.replace(/\n/g, '')],
		["in OpenSSH's form, with \\n for each line end", openSsh.private.replace(/\n/g, '\\n')],
		["in OpenSSH's form, with Windows line ends", openSsh.private.replace(/\n/g, '\r\n')],
		['in the older form', rsaPem],
		['in the older form, in one line', rsaPem.replace(/\n/g, ' ')],
		['in the older form, with a passphrase', protectedPem, PASSPHRASE],
		['in the older form, with a passphrase, in one line', protectedPem.replace(/\n+/g, ' '), PASSPHRASE],
		['that needs no passphrase, and one is filled in', openSsh.private, PASSPHRASE],
	])('a key %s', async (_what, privateKey, passphrase = '') => {
		const own = await startTunnelServer(publicOf(privateKey.startsWith('-----BEGIN RSA') ? rsaPem : privateKey === protectedKey.private ? protectedKey.private : openSsh.private, PASSPHRASE));
		expect(inShort(await deliver('d1', throughByKey(own, { privateKey, passphrase })))).toBe('new first_delivery');
		await own.close();
	});
});

describe('what goes wrong is said in plain words, without secrets, by the node and by the credential test', () => {
	const other = ed25519Keys();
	const protectedKey = ed25519Keys({ passphrase: PASSPHRASE, cipher: 'aes256-cbc', rounds: 2 });
	const pkcs8 = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
	/** As ssh-keygen writes it with many rounds, from its beginning to the number; what follows stays. */
	const drawnOut = () => {
		const lines = protectedKey.private.trim().split('\n');
		const bytes = Buffer.from(lines.slice(1, -1).join(''), 'base64');
		const at = bytes.indexOf('bcrypt') + 'bcrypt'.length + 4 + 4 + 16;
		expect(bytes.readUInt32BE(at)).toBe(2);
		bytes.writeUInt32BE(1_000_000, at);
		return [lines[0], bytes.toString('base64'), lines.at(-1)].join('\n');
	};
	const { private: damaged } = protectedKey;

	const failures: Array<[string, () => Promise<IDataObject> | IDataObject, string, RegExp]> = [
		['a wrong password', () => through(ssh, { sshPassword: 'wrong-S3cret' }), 'store_denied', /The SSH server at 127\.0\.0\.1:\d+ refused the login of "tunnel".*SSH Password/],
		['an unknown user', () => through(ssh, { sshUser: 'nobody' }), 'store_denied', /refused the login of "nobody"/],
		['a key that is not allowed', () => throughByKey(ssh, { privateKey: other.private }), 'store_denied', /refused the login of "tunnel".*authorized_keys/],
		['a wrong passphrase', () => throughByKey(ssh, { privateKey: protectedKey.private, passphrase: 'wrong-S3cret' }), 'store_misconfigured', /SSH Private Key cannot be opened with this passphrase/],
		['no passphrase', () => throughByKey(ssh, { privateKey: protectedKey.private }), 'store_misconfigured', /fill in SSH Key Passphrase/],
		['a key with a character missing, which the SSH client would work on for years', () => throughByKey(ssh, { privateKey: damaged.slice(0, 90) + damaged.slice(91), passphrase: PASSPHRASE }), 'store_misconfigured', /SSH Private Key cannot be read as a private key/],
		['a key that is cut off', () => throughByKey(ssh, { privateKey: other.private.slice(0, 200) }), 'store_misconfigured', /SSH Private Key holds no private key/],
		['a key whose passphrase is drawn out by a million rounds', () => throughByKey(ssh, { privateKey: drawnOut(), passphrase: PASSPHRASE }), 'store_misconfigured', /1000000 rounds, which would stop n8n.*ssh-keygen -p -a 16/],
		['the public key', () => throughByKey(ssh, { privateKey: other.public }), 'store_misconfigured', /SSH Private Key holds no private key.*not the public key/],
		['a key in another form', () => throughByKey(ssh, { privateKey: pkcs8 }), 'store_misconfigured', /PKCS #8.*ssh-keygen -p/],
		['an older key that is damaged', () => throughByKey(ssh, { privateKey: pkcs8.replaceAll('PRIVATE KEY', 'RSA PRIVATE KEY') }), 'store_misconfigured', /SSH Private Key cannot be read/],
		['no password', () => through(ssh, { sshPassword: '' }), 'store_misconfigured', /SSH Password is empty/],
		['no key', () => throughByKey(ssh, { privateKey: ' ' }), 'store_misconfigured', /SSH Private Key is empty/],
		['no SSH host', () => through(ssh, { sshHost: '' }), 'store_misconfigured', /SSH Host is empty/],
		['a user in the SSH host', () => through(ssh, { sshHost: 'me@127.0.0.1' }), 'store_misconfigured', /SSH Host is not a host name/],
		['no SSH user', () => through(ssh, { sshUser: '' }), 'store_misconfigured', /SSH User is empty/],
		['a switch that an expression has made a text', () => ({ ...through(ssh), sshTunnel: 'yes' }), 'store_misconfigured', /SSH Tunnel is neither on nor off/],
		['the path of a socket as host', () => through(ssh, { host: '/var/run/postgresql' }), 'store_misconfigured', /Host is the path of a socket/],
		['nothing listens at the SSH port', async () => through({ host: '127.0.0.1', port: await freePort() }), 'store_unreachable', /No connection to the SSH server at 127\.0\.0\.1:\d+ \(nothing listens there\).*SSH Host and SSH Port/],
		['an unknown SSH host', () => through({ host: 'ssh.invalid', port: 22 }), 'store_unreachable', /No connection to the SSH server at ssh\.invalid:22 \(the host name /],
		['an SSH server that accepts and says nothing', async () => through(await silentServer()), 'store_unreachable', /No connection to the SSH server at 127\.0\.0\.1:\d+ \(no answer in time\)/],
		['the port of the database in the place of the SSH port', () => through(workbench.database), 'store_unreachable', /The SSH server at 127\.0\.0\.1:\d+ ended the connection before the login.*SSH Port/],
		['a database that is not there', async () => through(ssh, { port: await freePort() }), 'store_unreachable', /The SSH server at 127\.0\.0\.1:\d+ cannot reach PostgreSQL at 127\.0\.0\.1:\d+.*Host and Port are seen from the SSH server/],
		['a server that is no PostgreSQL', () => through(ssh, { host: ssh.host, port: ssh.port }), 'store_unreachable', /No connection to PostgreSQL at .* through the SSH server/],
		['a wrong password of the database', () => through(ssh, { user: 'nobody', password: 'wrong-S3cret' }), 'store_denied', /The server at 127\.0\.0\.1:\d+ refused the login of "nobody"/],
		['TLS that the database does not speak', () => through(ssh, { tls: 'require' }), 'store_misconfigured', /the server has no TLS/],
	];
	const closers: Array<() => Promise<void>> = [];
	afterAll(async () => await Promise.all(closers.map(async (close) => await close())));

	async function silentServer(): Promise<{ host: string; port: number }> {
		const proxy = await startProxy(ssh);
		proxy.goSilent();
		closers.push(async () => await proxy.close());
		return proxy;
	}

	const secretsOf = (data: IDataObject) => ['wrong-S3cret', SSH_PASSWORD, PASSPHRASE, ...((data.privateKey as string | undefined) ?? '').split(/\s+/).filter((line) => line.length > 40)];

	test.each(failures)('%s', async (_what, changes, kind, words) => {
		const credential = workbench.credential(await changes());
		const run = await workbench.run(guarded(), { items: deliveries('d1'), credentials: { store: credential } });
		const [{ error }] = claimsOf(run, 'Claim', OPERATIONAL_ERROR);
		expect(error).toMatchObject({ kind, retryable: kind === 'store_unreachable', hint: expect.stringMatching(/\w/) as string });
		expect(`${error?.message}. ${error?.hint}`).toMatch(words);
		expect(await workbench.rows()).toEqual([]);

		const verdict = await testCredential(credential);
		expect(verdict.status).toBe('Error');
		expect(verdict.message).toMatch(words);
		for (const secret of secretsOf(credential)) {
			expect(run.everything()).not.toContain(secret);
			expect(verdict.message).not.toContain(secret);
		}
	});

	test('a server that prohibits forwarding, and later does not', async () => {
		const own = await startTunnelServer();
		own.forwarding('prohibited');
		const words = /does not let "tunnel" through to 127\.0\.0\.1:\d+/;
		expect((await deliver('d1', through(own))).error).toMatchObject({ kind: 'store_denied', message: expect.stringMatching(words) as string, hint: expect.stringContaining('AllowTcpForwarding') as string, retryable: false });
		expect((await testCredential(workbench.credential(through(own)))).message).toMatch(words);
		own.forwarding('allowed');
		expect(inShort(await deliver('d1', through(own)))).toBe('new first_delivery');
		expect(own.accepted).toBe(1);
		await own.close();
	});

	test('a user who is switched off and on again: said each time, and the same settings work again', async () => {
		const own = await startTunnelServer();
		own.refuseLogins(true);
		for (const id of ['d1', 'd2', 'd3']) expect((await deliver(id, through(own))).error?.kind).toBe('store_denied');
		own.refuseLogins(false);
		expect(inShort(await deliver('d1', through(own)))).toBe('new first_delivery');
		await own.close();
	});
});
