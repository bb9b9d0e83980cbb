import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from 'pg';
import { DestinationClient } from '../../sandbox/destination';
import { LEASE_OVER } from '../support/timePassed';
import { order, sandboxAddress } from './support/address';
import { ClaimTable } from './support/claimTable';
import { N8n } from './support/n8n';
import { until } from './support/until';
import { callWebhook } from './support/webhookCall';
import { completeClaim, idempotentClaim, node } from './support/workflow';

/**
 * n8n is killed (SIGKILL) while seven deliveries are under way, each at another point between its claim and its
 * outcome. Then n8n is back, and the sender delivers each of them again.
 */

const SOURCE = `killed-${randomUUID().slice(0, 8)}`;
const { claimStoreDatabase, destinationUrl } = sandboxAddress();
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
const CLAIMED_TAKE_OVER = 'evt-claimed-take-over';
const ACTED = 'evt-acted';
const ACTED_TAKE_OVER = 'evt-acted-take-over';
const RECORDED_UNHEARD = 'evt-recorded-unheard';

beforeAll(async () => {
	gate = await openGate();
	database = new Client({ ...claimStoreDatabase, application_name: 'e2e-killed' });
	await database.connect();
	await new N8n().publish(workflow());
	expect(await deliver('evt-first')).toBe(200);

	const lost = [
		deliver(CLAIMED, { hold: 'claimed' }),
		deliver(CLAIMED_TAKE_OVER, { hold: 'claimed', takeOver: true }),
		deliver(ACTED, { hold: 'acted' }),
		deliver(ACTED_TAKE_OVER, { hold: 'acted', takeOver: true }),
		deliver(RECORDED_UNHEARD, { hold: 'acted' }),
	];
	const held = () => [CLAIMED, CLAIMED_TAKE_OVER].every((id) => gate.holds('claimed', id)) && [ACTED, ACTED_TAKE_OVER, RECORDED_UNHEARD].every((id) => gate.holds('acted', id));
	await until('the deliveries are where they should be', 30, async () => await Promise.resolve(held()));
	// Others insert two keys and hold a row, and do not commit: two inserts of n8n and an outcome wait for them.
	const holders = { [NOT_INSERTED]: await holdKey(NOT_INSERTED), [INSERTED_UNHEARD]: await holdKey(INSERTED_UNHEARD) };
	const holderOfRow = await connectAs('holder');
	await holderOfRow.query('BEGIN');
	await holderOfRow.query('SELECT FROM public.idempotent_claims WHERE source = $1 AND delivery_id = $2 FOR UPDATE', [SOURCE, RECORDED_UNHEARD]);
	lost.push(deliver(NOT_INSERTED), deliver(INSERTED_UNHEARD, { takeOver: true }));
	gate.letThrough('acted', RECORDED_UNHEARD);
	await until('three statements wait', 30, async () => (await waiting()) === 3);

	await order('kill');
	expect(await Promise.all(lost)).toEqual(lost.map(() => 'no answer'));
	// What had not been carried out never will be; what had reached the server is carried out after n8n's death.
	await database.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN (SELECT pid FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))`, [await pidOf(holders[NOT_INSERTED])]);
	for (const holder of [...Object.values(holders), holderOfRow]) await holder.end();
	await until('nobody waits any more', 30, async () => (await waiting()) === 0);
	await order('restart');
});
afterAll(async () => {
	await database.end();
	await claims.close();
	gate.server.closeAllConnections();
	gate.server.close();
});

/** The record of a delivery, and how many leads the destination has of it. */
async function found(id: string): Promise<{ state: string | undefined; attempt: number | undefined; reference: string | null | undefined; leads: number }> {
	const { state, attempt, reference } = (await claims.row(SOURCE, id)) ?? {};
	return { state, attempt, reference, leads: (await destination.leads({ deliveryId: id })).length };
}
/** What the record tells of its past: `processing 1, completed 1`, each state with its version. */
async function past(id: string): Promise<string | undefined> {
	return (await claims.row(SOURCE, id))?.history.map(({ state, version }) => `${state} ${version}`).join(', ');
}
const endLease = async (id: string) => await claims.change(SOURCE, LEASE_OVER, id);

const aReference = expect.stringMatching(/^\d+$/) as string;

test('before the insert is carried out: nothing is known, and the next delivery does it', async () => {
	expect(await found(NOT_INSERTED)).toEqual({ state: undefined, attempt: undefined, reference: undefined, leads: 0 });
	expect(await deliver(NOT_INSERTED)).toBe(200);
	expect(await found(NOT_INSERTED)).toEqual({ state: 'completed', attempt: 1, reference: aReference, leads: 1 });
	expect(await past(NOT_INSERTED)).toBe('processing 1, completed 1');
});

test('after the insert, before its answer: unfinished, and taken over when the lease is over', async () => {
	expect(await found(INSERTED_UNHEARD)).toEqual({ state: 'processing', attempt: 1, reference: null, leads: 0 });
	expect(await deliver(INSERTED_UNHEARD)).toBe(200);
	expect(await found(INSERTED_UNHEARD)).toEqual({ state: 'processing', attempt: 1, reference: null, leads: 0 });
	await endLease(INSERTED_UNHEARD);
	expect(await deliver(INSERTED_UNHEARD)).toBe(200);
	expect(await found(INSERTED_UNHEARD)).toEqual({ state: 'completed', attempt: 2, reference: aReference, leads: 1 });
	expect(await past(INSERTED_UNHEARD)).toBe('processing 1, processing 2, completed 2');
});

test('once New Claim was handed on, before the action: unfinished, then uncertain; nothing is repeated by itself', async () => {
	expect(await found(CLAIMED)).toEqual({ state: 'processing', attempt: 1, reference: null, leads: 0 });
	expect(await deliver(CLAIMED)).toBe(200);
	await endLease(CLAIMED);
	// The settings of a later copy do not loosen those of the owner.
	expect(await deliver(CLAIMED, { takeOver: true })).toBe(200);
	expect(await found(CLAIMED)).toEqual({ state: 'outcome_uncertain', attempt: 1, reference: null, leads: 0 });
	expect(await past(CLAIMED)).toBe('processing 1, outcome_uncertain 1');
});

test('the same with Take Over: New Claim again once the lease is over, not before', async () => {
	expect(await deliver(CLAIMED_TAKE_OVER, { takeOver: true })).toBe(200);
	expect(await found(CLAIMED_TAKE_OVER)).toEqual({ state: 'processing', attempt: 1, reference: null, leads: 0 });
	await endLease(CLAIMED_TAKE_OVER);
	expect(await deliver(CLAIMED_TAKE_OVER, { takeOver: true })).toBe(200);
	expect(await found(CLAIMED_TAKE_OVER)).toEqual({ state: 'completed', attempt: 2, reference: aReference, leads: 1 });
	expect(await deliver(CLAIMED_TAKE_OVER, { takeOver: true })).toBe(200);
	expect(await found(CLAIMED_TAKE_OVER)).toMatchObject({ attempt: 2, leads: 1 });
	expect(await past(CLAIMED_TAKE_OVER)).toBe('processing 1, processing 2, completed 2');
});

test('after the action, before its outcome is sent: uncertain, and not done twice', async () => {
	expect(await found(ACTED)).toEqual({ state: 'processing', attempt: 1, reference: null, leads: 1 });
	expect(await deliver(ACTED)).toBe(200);
	await endLease(ACTED);
	expect(await deliver(ACTED)).toBe(200);
	expect(await found(ACTED)).toEqual({ state: 'outcome_uncertain', attempt: 1, reference: null, leads: 1 });
	expect(await past(ACTED)).toBe('processing 1, outcome_uncertain 1');
});

// What Take Over means; the destination can tell by the key that it is the same job.
test('the same with Take Over: done again once the lease is over, under the same idempotency key', async () => {
	expect(await deliver(ACTED_TAKE_OVER, { takeOver: true })).toBe(200);
	expect(await found(ACTED_TAKE_OVER)).toEqual({ state: 'processing', attempt: 1, reference: null, leads: 1 });
	await endLease(ACTED_TAKE_OVER);
	expect(await deliver(ACTED_TAKE_OVER, { takeOver: true })).toBe(200);
	expect(await found(ACTED_TAKE_OVER)).toEqual({ state: 'completed', attempt: 2, reference: aReference, leads: 2 });
	const keys = (await destination.leads({ deliveryId: ACTED_TAKE_OVER })).map(({ idempotencyKey }) => idempotencyKey);
	expect(keys).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), keys[0]]);
});

test('after the outcome is recorded, before its answer: completed, and not done twice', async () => {
	const recorded = { state: 'completed', attempt: 1, reference: aReference, leads: 1 };
	expect(await found(RECORDED_UNHEARD)).toEqual(recorded);
	expect(await deliver(RECORDED_UNHEARD)).toBe(200);
	expect(await found(RECORDED_UNHEARD)).toEqual(recorded);
	expect(await past(RECORDED_UNHEARD)).toBe('processing 1, completed 1');
});

/** Webhook → claim → gate → action → gate → outcome → answer. The delivery says at which gate it is held. */
function workflow() {
	const ask = (point: string) => node('httpRequest', 4.2, { url: `=${gate.url}/${point}/{{ $('Webhook').item.json.body.id }}?hold={{ $('Webhook').item.json.body.hold || '' }}`, options: {} }, `Gate ${point}`);
	const act = node(
		'httpRequest',
		4.2,
		{
			method: 'POST',
			url: `${destinationUrl}/leads`,
			sendHeaders: true,
			headerParameters: { parameters: [{ name: 'Idempotency-Key', value: `={{ $('Idempotent Claim').item.json.claim.idempotencyKey }}` }] },
			sendBody: true,
			specifyBody: 'json',
			jsonBody: `={{ JSON.stringify({ deliveryId: $('Webhook').item.json.body.id, email: 'lead@example.com', name: 'Example Lead' }) }}`,
			options: {},
		},
		'Act',
	);
	const guard = idempotentClaim({ source: SOURCE, deliveryId: '={{ $json.body.id }}', options: { whenLeaseExpires: '={{ $json.body.takeOver ? "takeOver" : "outcomeUncertain" }}' } });
	const receive = { ...node('webhook', 2.1, { httpMethod: 'POST', path: SOURCE, responseMode: 'responseNode', options: {} }, 'Webhook'), extra: { webhookId: randomUUID() } };
	const answer = node('respondToWebhook', 1.5, { respondWith: 'noData', options: { responseCode: '={{ $json.claim.responseCode }}' } }, 'Answer');
	return {
		name: SOURCE,
		nodes: [receive, guard, ask('claimed'), act, ask('acted'), completeClaim({ outcomeReference: `={{ $('Act').item.json.id }}` }), answer],
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

/** `hold`: at which gate it waits; `takeOver`: what it says under When Lease Expires. */
async function deliver(id: string, how: { hold?: 'claimed' | 'acted'; takeOver?: boolean } = {}): Promise<number | 'no answer'> {
	try {
		return (await callWebhook(SOURCE, { id, ...how })).status;
	} catch {
		return 'no answer';
	}
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
	// One that a failed test leaves behind ends with the server.
	client.on('error', () => undefined);
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

/**
 * Sessions of n8n that wait for another session's lock, and do so for long: the node waits for 50 or 500 ms at first,
 * then for 0.8 of the credential's timeout, and what is killed during the first would not be waiting any more afterwards.
 */
async function waiting(): Promise<number> {
	const { rows } = await database.query<{ count: number }>(
		`SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'n8n-nodes-idempotent-claim' AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > '600 ms'`,
	);
	return rows[0].count;
}
