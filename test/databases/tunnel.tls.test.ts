import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { IDataObject } from 'n8n-workflow';
import type { OwnPostgres } from '../support/ownPostgres';
import type { SshServer } from '../support/sshServer';
import { claimsOf, deliveries, guarded, NEW_CLAIM, OPERATIONAL_ERROR, Workbench, type Claim } from '../support/workbench';
import { makeAuthority, type Authority } from './support/certificates';
import { startTlsPostgres } from './support/tlsPostgres';
import { startTunnelServer, testCredential, through } from './support/tunnels';
import type { TunnelReport } from './support/tunnelProcess';

/** TLS inside a tunnel: the database is verified by its own name, not by the SSH server's. And what a process with a tunnel leaves open. */

let postgres: OwnPostgres;
let workbench: Workbench;
let ssh: SshServer;
let authority: Authority;
let other: Authority;

beforeAll(async () => {
	({ postgres, authority } = await startTlsPostgres(['localhost']));
	other = await makeAuthority('Another CA');
	workbench = await Workbench.open({}, postgres);
	ssh = await startTunnelServer();
});
afterAll(async () => {
	await ssh?.close();
	await workbench?.close();
	await postgres?.remove();
});

let deliveriesMade = 0;

async function deliver(credential: IDataObject): Promise<Claim> {
	const run = await workbench.run(guarded(), { items: deliveries(`d-${++deliveriesMade}`), credentials: { store: workbench.credential(through(ssh, credential)) } });
	return [NEW_CLAIM, OPERATIONAL_ERROR].flatMap((output) => claimsOf(run, 'Claim', output))[0];
}

test('Verify Full: the certificate is for the host that the SSH server is asked for', async () => {
	const asked = ssh.asked.length;
	expect(await deliver({ host: 'localhost', tls: 'verifyFull', caCertificate: authority.certificate })).toMatchObject({ status: 'new', error: null });
	expect(ssh.asked.slice(asked)).toContain(`localhost:${postgres.port}`);
	const lines = await workbench.database.query<{ ssl: boolean }>(
		`SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'n8n-nodes-idempotent-claim' AND datname = current_database()`,
	);
	expect(lines).toEqual([{ ssl: true }]);
});

test.each<[string, () => IDataObject, string]>([
	['the address in the place of the name', () => ({ host: '127.0.0.1', caCertificate: authority.certificate }), 'another host name'],
	['another CA', () => ({ host: 'localhost', caCertificate: other.certificate }), 'not signed by a CA'],
	['no CA', () => ({ host: 'localhost' }), 'not signed by a CA'],
])('Verify Full with %s is refused, and no line stays open', async (_what, credential, words) => {
	const before = ssh.lines;
	const tls = { tls: 'verifyFull', ...credential() };
	expect((await deliver(tls)).error).toMatchObject({ kind: 'store_misconfigured', message: expect.stringContaining(words) as string });
	expect((await testCredential(workbench.credential(through(ssh, tls)))).message).toContain(words);
	while (ssh.lines > before) await new Promise(setImmediate);
});

test('the tunnel is cut while TLS is idle in it: the next claim works', async () => {
	const tls = { host: 'localhost', tls: 'verifyFull', caCertificate: authority.certificate };
	await deliver(tls);
	ssh.drop();
	expect(await deliver(tls)).toMatchObject({ status: 'new', error: null });
});

test('a silent database behind TLS is given up in time', async () => {
	ssh.forwarding('held');
	const { error } = await deliver({ host: 'localhost', tls: 'verifyFull', caCertificate: authority.certificate, timeoutMs: 1000 });
	expect(error).toMatchObject({ kind: 'store_unreachable', message: expect.stringContaining('in time') as string });
	ssh.forwarding('allowed');
});

describe.each<[string, () => IDataObject]>([
	['without TLS', () => ({})],
	['with TLS', () => ({ host: 'localhost', tls: 'verifyFull', caCertificate: authority.certificate })],
])('a process with an idle tunnel, %s', (_what, tls) => {
	test('ends by itself, and has opened no port', async () => {
		const own = await startTunnelServer();
		const child = fork(path.join(__dirname, 'support/tunnelProcess.ts'), { execArgv: ['--import', require.resolve('tsx')] });
		try {
			child.send(workbench.credential(through(own, { timeoutMs: 30_000, ...tls() })));
			const [report] = (await once(child, 'message')) as [TunnelReport];
			const claimed = performance.now();
			expect(report.answer).toBe('new first_delivery');
			expect(report.open.filter((kind) => /server/i.test(kind))).toEqual([]);
			expect([own.open, own.lines]).toEqual([1, 1]);
			const [exitCode] = (await once(child, 'exit')) as [number];
			expect(exitCode).toBe(0);
			// The pool keeps a line for ten seconds, n8n an SSH connection for five minutes.
			expect(performance.now() - claimed).toBeLessThan(8000);
		} finally {
			child.kill();
			await own.close();
		}
	});
});
