import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { Client } from 'pg';
import { signed } from '../../sandbox/sender';
import { sandboxAddress } from './support/address';
import { N8n } from './support/n8n';
import { until } from './support/until';
import { callWebhook, sendToWebhook } from './support/webhookCall';
import { idempotentClaim, webhook } from './support/workflow';

/** n8n gives itself 30 s by default; one that is idle but for our pool needs a fraction of that. */
const SECONDS_TO_STOP = 10;

/** Runs last: nothing that needs n8n comes behind it. */
test('n8n stops promptly while the pool to the claim store is open, and its log holds no secret and no payload', async () => {
	const { n8nUrl, workflows, claimStoreDatabase, login, logFile } = sandboxAddress();
	const marker = `secret-${randomUUID()}`;
	const answers = [await deliver(`evt_${randomUUID()}`), await deliver(undefined), await deliver(`evt_${randomUUID()}`)];
	expect(answers).toEqual([200, 400, 200]);
	await failLoudly(marker);
	expect(await connectionsOfN8n()).toBeGreaterThan(0);

	const pid = await pidOfN8n(new URL(n8nUrl).port);
	const begun = Date.now();
	process.kill(pid, 'SIGTERM');
	await until('n8n has ended', SECONDS_TO_STOP, async () => !(await isAlive(pid)));
	console.log(`n8n stopped in ${((Date.now() - begun) / 1000).toFixed(1)} s`);
	await until('n8n has closed its connections to the claim store', 5, async () => (await connectionsOfN8n()) === 0);

	const log = await readFile(logFile, 'utf8');
	// Otherwise nothing would be proved: n8n logs at level debug, and has logged the error.
	expect(log).toContain('| debug |');
	expect(log).toContain('The delivery ID is missing');
	expect(log).toContain('Editor is now accessible');
	for (const secret of [marker, claimStoreDatabase.password, login.password, 'postgres://', 'postgresql://', 'not-the-password']) {
		expect(linesWith(log, secret)).toEqual([]);
	}

	async function deliver(id: string | undefined): Promise<number> {
		const event = { id, type: 'lead.created', lead: { email: `${marker}@example.com`, name: marker } };
		const { body, headers } = signed(event);
		return (await sendToWebhook(workflows['guarded-webhook'].webhookUrl, body, headers)).status;
	}
});

/** Without a wire at Operational Error a bad delivery fails the execution, and n8n logs the error. */
async function failLoudly(marker: string): Promise<void> {
	const n8n = new N8n();
	const workflow = await n8n.publish({ name: 'Fails loudly', nodes: [webhook('fails-loudly'), idempotentClaim({ source: 'shutdown', deliveryId: '={{ $json.body.id }}' })], wires: ['Webhook > Idempotent Claim'] });
	await callWebhook('fails-loudly', { note: marker }, { authorization: marker });
	expect((await n8n.onlyExecution(workflow)).status).toBe('error');
}

function linesWith(log: string, text: string): string[] {
	return log.split('\n').filter((line) => line.includes(text));
}

/** How many sessions the claim store has that are not of these tests. */
async function connectionsOfN8n(): Promise<number> {
	const client = new Client({ ...sandboxAddress().claimStoreDatabase, application_name: 'e2e-shutdown' });
	await client.connect();
	try {
		const { rows } = await client.query<{ count: number }>(
			`SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'n8n%'`,
		);
		return rows[0].count;
	} finally {
		await client.end();
	}
}

/** The n8n that listens on this port, found among the system's processes. */
async function pidOfN8n(port: string): Promise<number> {
	for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
		const [command, environment] = await Promise.all(['cmdline', 'environ'].map(async (file) => await readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')));
		if (command.split('\0').includes('start') && environment.split('\0').includes(`N8N_PORT=${port}`)) return Number(pid);
	}
	throw new Error(`No n8n runs on port ${port}`);
}

async function isAlive(pid: number): Promise<boolean> {
	const state = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
	// A zombie has ended; its parent has only not asked yet.
	return state !== '' && !/\) Z /.test(state);
}
