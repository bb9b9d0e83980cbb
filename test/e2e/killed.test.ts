import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from 'pg';
import { DestinationClient } from '../../sandbox/destination';
import { sandboxAddress } from './support/address';
import { ClaimTable, type ClaimRow } from './support/claimTable';
import { N8n } from './support/n8n';
import { until } from './support/until';
import { completeClaim, idempotentClaim, node } from './support/workflow';

/**
 * n8n is killed (SIGKILL) while five deliveries are under way, each at another point between its claim and its
 * outcome. Then n8n is back, and the sender delivers each of them again.
 */

const SOURCE = `killed-${randomUUID().slice(0, 8)}`;
const { claimStoreDatabase, controlUrl, destinationUrl, n8nUrl } = sandboxAddress();
const destination = new DestinationClient(destinationUrl);
const claims = new ClaimTable();
/** The workflow asks here before it goes on; who is not let through waits. */
let gate: Gate;
let database: Client;

interface Gate {
	url: string;
	/** Whether a delivery waits at this point. */
	holds: (point: string, id: string) => boolean;
	letThrough: (point: string, id: string) => void;
	server: Server;
}

const NOT_INSERTED = 'evt-not-inserted';
const INSERTED_UNHEARD = 'evt-inserted-unheard';
const CLAIMED = 'evt-claimed';
const ACTED = 'evt-acted';
const RECORDED_UNHEARD = 'evt-recorded-unheard';

beforeAll(async () => {
	gate = await openGate();
	database = new Client({ ...claimStoreDatabase, application_name: 'e2e-killed' });
	await database.connect();
	await new N8n().publish(workflow());
	expect(await deliver('evt-first')).toBe(200);

	// Others insert these two keys and do not commit: n8n's inserts wait for them.
	const holders = { [NOT_INSERTED]: await holdKey(NOT_INSERTED), [INSERTED_UNHEARD]: await holdKey(INSERTED_UNHEARD) };
	const lost = [NOT_INSERTED, INSERTED_UNHEARD, CLAIMED, ACTED, RECORDED_UNHEARD].map(async (id) => await deliver(id, id === CLAIMED ? 'claimed' : 'acted'));
	await until('the deliveries are where they should be', 30, async () => gate.holds('claimed', CLAIMED) && gate.holds('acted', ACTED) && gate.holds('acted', RECORDED_UNHEARD) && (await waiting()) === 2);
	// Its outcome waits for this row, too.
	const holderOfRow = await connectAs('holder');
	await holderOfRow.query('BEGIN');
	await holderOfRow.query('SELECT FROM public.idempotent_claims WHERE source = $1 AND delivery_id = $2 FOR UPDATE', [SOURCE, RECORDED_UNHEARD]);
	gate.letThrough('acted', RECORDED_UNHEARD);
	await until('its outcome waits', 30, async () => (await waiting()) === 3);

	await order('kill');
	expect(await Promise.all(lost)).toEqual(lost.map(() => 'no answer'));
	// What had not been carried out never will be; what had reached the server is carried out after n8n's death.
	await database.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN (SELECT pid FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))`, [await pidOf(holders[NOT_INSERTED])]);
	for (const holder of [...Object.values(holders), holderOfRow]) await holder.end();
	await until('nobody waits any more', 30, async () => (await waiting()) === 0);
	for (const point of ['claimed', 'acted']) for (const id of [CLAIMED, ACTED]) gate.letThrough(point, id);
	await order('restart');
});
afterAll(async () => {
	await database.end();
	await claims.close();
	gate.server.closeAllConnections();
	gate.server.close();
});

const row = async (id: string): Promise<ClaimRow | undefined> => (await claims.rows(SOURCE)).find(({ deliveryId }) => deliveryId === id);
const leads = async (id: string) => (await destination.leads({ deliveryId: id })).length;
const endLease = async (id: string) => await database.query(`UPDATE public.idempotent_claims SET lease_expires_at = now() - interval '1 s' WHERE source = $1 AND delivery_id = $2`, [SOURCE, id]);

test('before the insert is carried out: nothing is known, and the next delivery does it', async () => {
	expect(await row(NOT_INSERTED)).toBeUndefined();
	expect(await deliver(NOT_INSERTED)).toBe(200);
	expect(await row(NOT_INSERTED)).toMatchObject({ state: 'completed', attempt: 1 });
	expect(await leads(NOT_INSERTED)).toBe(1);
});

test('after the insert, before its answer: unfinished, and taken over when the lease is over', async () => {
	expect(await row(INSERTED_UNHEARD)).toMatchObject({ state: 'processing', attempt: 1 });
	expect(await deliver(INSERTED_UNHEARD)).toBe(200);
	expect([await row(INSERTED_UNHEARD), await leads(INSERTED_UNHEARD)]).toMatchObject([{ state: 'processing', attempt: 1 }, 0]);
	await database.query(`UPDATE public.idempotent_claims SET when_lease_expires = 'takeOver' WHERE source = $1 AND delivery_id = $2`, [SOURCE, INSERTED_UNHEARD]);
	await endLease(INSERTED_UNHEARD);
	expect(await deliver(INSERTED_UNHEARD)).toBe(200);
	expect([await row(INSERTED_UNHEARD), await leads(INSERTED_UNHEARD)]).toMatchObject([{ state: 'completed', attempt: 2 }, 1]);
});

test('once New Claim was handed on, before the action: unfinished, then uncertain; nothing is repeated by itself', async () => {
	expect([await row(CLAIMED), await leads(CLAIMED)]).toMatchObject([{ state: 'processing', attempt: 1 }, 0]);
	expect(await deliver(CLAIMED)).toBe(200);
	await endLease(CLAIMED);
	expect(await deliver(CLAIMED)).toBe(200);
	expect([await row(CLAIMED), await leads(CLAIMED)]).toMatchObject([{ state: 'outcome_uncertain', attempt: 1 }, 0]);
});

test('after the action, before its outcome is sent: uncertain, and not done twice', async () => {
	expect([await row(ACTED), await leads(ACTED)]).toMatchObject([{ state: 'processing', attempt: 1 }, 1]);
	expect(await deliver(ACTED)).toBe(200);
	await endLease(ACTED);
	expect(await deliver(ACTED)).toBe(200);
	expect([await row(ACTED), await leads(ACTED)]).toMatchObject([{ state: 'outcome_uncertain', attempt: 1 }, 1]);
});

test('after the outcome is recorded, before its answer: completed, and not done twice', async () => {
	expect([await row(RECORDED_UNHEARD), await leads(RECORDED_UNHEARD)]).toMatchObject([{ state: 'completed', attempt: 1, reference: expect.stringMatching(/^\d+$/) as string }, 1]);
	expect(await deliver(RECORDED_UNHEARD)).toBe(200);
	expect([await row(RECORDED_UNHEARD), await leads(RECORDED_UNHEARD)]).toMatchObject([{ state: 'completed', attempt: 1 }, 1]);
});

/** Webhook → claim → gate → action → gate → outcome → answer. The delivery says at which gate it is held. */
function workflow() {
	const ask = (point: string) => node('httpRequest', 4.2, { url: `=${gate.url}/${point}/{{ $('Webhook').item.json.body.id }}?hold={{ $('Webhook').item.json.body.hold }}`, options: {} }, `Gate ${point}`);
	const act = node(
		'httpRequest',
		4.2,
		{
			method: 'POST',
			url: `${destinationUrl}/leads`,
			sendBody: true,
			specifyBody: 'json',
			jsonBody: `={{ JSON.stringify({ deliveryId: $('Webhook').item.json.body.id, email: 'lead@example.com', name: 'Example Lead' }) }}`,
			options: {},
		},
		'Act',
	);
	const receive = { ...node('webhook', 2.1, { httpMethod: 'POST', path: SOURCE, responseMode: 'responseNode', options: {} }, 'Webhook'), extra: { webhookId: randomUUID() } };
	const answer = node('respondToWebhook', 1.5, { respondWith: 'noData', options: { responseCode: '={{ $json.claim.responseCode }}' } }, 'Answer');
	return {
		name: SOURCE,
		nodes: [receive, idempotentClaim({ source: SOURCE, deliveryId: '={{ $json.body.id }}' }), ask('claimed'), act, ask('acted'), completeClaim({ outcomeReference: `={{ $('Act').item.json.id }}` }), answer],
		wires: [
			'Webhook > Idempotent Claim',
			'Idempotent Claim > Gate claimed',
			'Gate claimed > Act',
			'Act > Gate acted',
			'Gate acted > Complete Claim',
			'Complete Claim > Answer',
			'Idempotent Claim:1 > Answer',
			'Idempotent Claim:2 > Answer',
		],
	};
}

async function deliver(id: string, hold = ''): Promise<number | 'no answer'> {
	try {
		const response = await fetch(`${n8nUrl}/webhook/${SOURCE}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ id, hold }) });
		await response.arrayBuffer();
		return response.status;
	} catch {
		return 'no answer';
	}
}

async function order(what: 'kill' | 'restart'): Promise<void> {
	const response = await fetch(`${controlUrl}/${what}`, { method: 'POST' });
	if (!response.ok) throw new Error(`n8n could not be told to ${what}: ${await response.text()}`);
}

async function openGate(): Promise<Gate> {
	const held = new Map<string, ServerResponse>();
	const server = createServer((request, response) => {
		const url = new URL(request.url ?? '/', 'http://127.0.0.1');
		const [, point, id] = url.pathname.split('/');
		if (url.searchParams.get('hold') === point) held.set(`${point} ${id}`, response);
		else response.end('{}');
	}).listen(0, '127.0.0.1');
	await once(server, 'listening');
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		holds: (point, id) => held.has(`${point} ${id}`),
		letThrough: (point, id) => void held.get(`${point} ${id}`)?.end('{}'),
		server,
	};
}

async function connectAs(name: string): Promise<Client> {
	const client = new Client({ ...claimStoreDatabase, application_name: `e2e-killed-${name}` });
	await client.connect();
	return client;
}

/** Another session in the middle of inserting this delivery. */
async function holdKey(id: string): Promise<Client> {
	const client = await connectAs('holder');
	await client.query('BEGIN');
	await client.query(
		`INSERT INTO public.idempotent_claims
			SELECT (jsonb_populate_record(claim, jsonb_build_object('delivery_id', $2::text, 'owner_token', 'of the holder'))).*
			  FROM public.idempotent_claims AS claim WHERE source = $1 AND delivery_id = 'evt-first'`,
		[SOURCE, id],
	);
	return client;
}

async function pidOf(client: Client): Promise<number> {
	return (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0].pid;
}

/** Sessions of n8n that wait for another session's lock. */
async function waiting(): Promise<number> {
	const { rows } = await database.query<{ count: number }>(
		`SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'n8n-nodes-idempotent-claim' AND wait_event_type = 'Lock'`,
	);
	return rows[0].count;
}
