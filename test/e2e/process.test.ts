import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Client } from 'pg';
import { sandboxAddress } from './support/address';
import { ClaimTable } from './support/claimTable';
import { itemsOf, N8n } from './support/n8n';
import { until } from './support/until';
import { callWebhook } from './support/webhookCall';
import { completeClaim, idempotentClaim, node, webhook, type PlannedNode } from './support/workflow';

/** The package inside a real n8n process: its connections, its neighbours, and what n8n's log says of them. */

const RUN = randomUUID().slice(0, 8);
const NEW_CLAIM = 0;
/** The credential's default. */
const MAX_CONNECTIONS = 10;
/** The examples durable-inbox and reconcile-before-retry look for claims every few seconds. */
const LOOKING = 2;
const OUR_SESSIONS = `FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'n8n-nodes-idempotent-claim'`;

let n8n: N8n;
let claims: ClaimTable;
let server: Client;

beforeAll(async () => {
	n8n = new N8n();
	claims = new ClaimTable();
	server = new Client({ ...sandboxAddress().claimStoreDatabase, application_name: 'e2e-process' });
	await server.connect();
});

afterAll(async () => {
	await claims.close();
	await server.end();
});

/** Webhook, Idempotent Claim, Complete Claim, and whatever follows, under one name for path and source. */
async function publish(name: string, ...more: PlannedNode[]) {
	const source = `${name}-${RUN}`;
	const chain = [webhook(source, 'lastNode'), idempotentClaim({ source, deliveryId: '={{ $json.body.id }}' }), completeClaim({ outcomeReference: '={{ "done-" + $json.body.id }}' }), ...more];
	const workflow = await n8n.publish({ name: source, nodes: chain, wires: wiresOf(chain) });
	return { workflow, source, deliver: async (id: string) => await post(source, id) };
}

const wiresOf = (chain: PlannedNode[]) => chain.slice(1).map(({ name }, index) => `${chain[index].name} > ${name}`);

async function post(path: string, id: string): Promise<number> {
	return (await callWebhook(path, { id })).status;
}

async function sessions(condition = 'true'): Promise<number> {
	return (await server.query<{ count: number }>(`SELECT count(*)::int AS count ${OUR_SESSIONS} AND ${condition}`)).rows[0].count;
}

const stateOf = async (source: string) => (await claims.rows(source)).map(({ deliveryId, state, attempt, reference }) => `${deliveryId}: ${state}, ${attempt}, ${reference}`);

test('an idle connection that the server drops is one line in n8n\'s log; n8n lives, and the next delivery is claimed', async () => {
	const { source, deliver } = await publish('dropped');
	expect(await deliver('first')).toBe(200);
	await until('our connections are idle', 10, async () => (await sessions()) > 0 && (await sessions(`state <> 'idle'`)) === 0);

	const { logFile, n8nUrl, claimStoreDatabase } = sandboxAddress();
	const before = (await readFile(logFile, 'utf8')).length;
	const { rowCount: dropped } = await server.query(`SELECT pg_terminate_backend(pid) ${OUR_SESSIONS}`);
	const newLines = async () => (await readFile(logFile, 'utf8')).slice(before).split('\n');
	const ours = async () => (await newLines()).filter((line) => line.includes('claim store'));
	await until('n8n has logged it', 10, async () => (await ours()).length >= Number(dropped));
	expect((await fetch(`${n8nUrl}/healthz`)).status).toBe(200);
	expect(await deliver('second')).toBe(200);
	expect(await stateOf(source)).toEqual(['first: completed, 1, done-first', 'second: completed, 1, done-second']);

	const lines = await ours();
	expect(lines).toHaveLength(Number(dropped));
	for (const line of lines) expect(line).toMatch(/\| warn +\| An idle connection to the claim store was dropped \(57P01\); the next claim opens a new one/);
	for (const line of await newLines()) {
		expect(line).not.toMatch(/^\s+at |terminating connection|unhandled|uncaught/i);
		expect(line).not.toContain(claimStoreDatabase.password);
	}
});

test("n8n's own Postgres node beside ours on the same database: neither hurts the other's connections or values", async () => {
	const { host, port, database, user, password } = sandboxAddress().claimStoreDatabase;
	const credential = await n8n.rest.post<{ id: string; name: string }>('/rest/credentials', {
		name: `Postgres ${RUN}`,
		type: 'postgres',
		data: { host, port, database, user, password, ssl: 'disable', maxConnections: 4 },
	});
	const query = (name: string) => {
		const sql = 'SELECT 7615917337495251231::bigint AS big, 1.10::numeric AS numeric, now() AS at, true AS yes, \'{"a":1}\'::json AS json, count(*) AS claims FROM public.idempotent_claims';
		return { ...node('postgres', 2.6, { operation: 'executeQuery', query: sql, options: {} }, name), extra: { credentials: { postgres: credential } } };
	};
	const source = `neighbours-${RUN}`;
	const chain = [
		webhook(source, 'lastNode'),
		query('Before'),
		idempotentClaim({ source, deliveryId: '={{ $("Webhook").item.json.body.id }}' }),
		query('Between'),
		completeClaim({ outcomeReference: '=done-{{ $("Webhook").item.json.body.id }}' }),
		query('After'),
	];
	const workflow = await n8n.publish({ name: source, nodes: chain, wires: wiresOf(chain) });
	const ids = Array.from({ length: 20 }, (_, index) => `evt_${10 + index}`);
	for (const id of ids.slice(0, 2)) expect(await post(source, id)).toBe(200);
	expect(await Promise.all(ids.slice(2).map(async (id) => await post(source, id)))).toEqual(Array<number>(18).fill(200));
	expect(await stateOf(source)).toEqual(ids.map((id) => `${id}: completed, 1, done-${id}`));

	const [latest] = await n8n.executionIds(workflow);
	const execution = await n8n.finishedExecution(latest);
	expect(execution.status).toBe('success');
	// What n8n's node does to the driver's type parsers is not seen in our values.
	expect(itemsOf(execution, 'Idempotent Claim', NEW_CLAIM)).toMatchObject([
		{ claim: { status: 'new', version: 1, attempt: 1, payloadComplete: true, firstSeenAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string } },
	]);
});

test('the credential is tested while 50 deliveries are in flight: each is claimed and completed, and no session stays', async () => {
	const { source, deliver } = await publish('tested');
	expect(await deliver('warm')).toBe(200);
	const { id } = sandboxAddress().credentials.claimStoreApi;
	const credential = await n8n.rest.get<object>(`/rest/credentials/${id}?includeData=true`);
	const ids = Array.from({ length: 50 }, (_, index) => `evt_${100 + index}`);
	const deliveries = Promise.all(ids.map(deliver));
	const verdicts: Array<{ status: string; message: string }> = [];
	for (let round = 0; round < 3; round++) verdicts.push(await n8n.rest.post('/rest/credentials/test', { credentials: credential }));

	expect(verdicts.map(({ status }) => status)).toEqual(['OK', 'OK', 'OK']);
	expect(await deliveries).toEqual(ids.map(() => 200));
	expect((await stateOf(source)).sort()).toEqual(['warm', ...ids].map((one) => `${one}: completed, 1, done-${one}`).sort());
	// The server takes a moment to see that the test's own session is over.
	await until('no session is left but those of the pool', 5, async () => (await sessions()) <= MAX_CONNECTIONS);
	await until('the pool has let its idle sessions go', 20, async () => (await sessions()) <= LOOKING);
});

test("n8n's Retry of an execution that failed behind Complete Claim repeats no claim and no outcome", async () => {
	const failing = node('stopAndError', 1, { errorMessage: 'behind the action' }, 'Fails');
	const { workflow, source, deliver } = await publish('retried', failing);
	expect(await deliver('once')).toBe(500);
	const [first] = await n8n.executionIds(workflow);
	expect(await n8n.finishedExecution(first)).toMatchObject({ status: 'error' });
	const before = await claims.rows(source);

	await n8n.rest.post(`/rest/executions/${first}/retry`, { loadWorkflow: false });
	await until('the retry has been started', 30, async () => (await n8n.executionIds(workflow)).length === 2);
	const retry = (await n8n.executionIds(workflow)).find((one) => one !== first);
	expect(await n8n.finishedExecution(String(retry))).toMatchObject({ status: 'error', mode: 'retry' });
	expect(await claims.rows(source)).toEqual(before);
	expect(await stateOf(source)).toEqual(['once: completed, 1, done-once']);
});
