import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Pool } from 'pg';
import type { Database } from './databases';

/**
 * What the destination does with the next leads, until told otherwise:
 * `work`, and answer; `refuse` with 503, nothing done; `loseAnswer`: store the lead, then close the
 * connection without a word; `hang`: neither act nor answer.
 */
export type Behaviour = 'work' | 'refuse' | 'loseAnswer' | 'hang';
const BEHAVIOURS: Behaviour[] = ['work', 'refuse', 'loseAnswer', 'hang'];

export interface Lead {
	id: string;
	deliveryId: string;
	email: string;
	name: string;
	idempotencyKey: string | null;
	createdAt: string;
}

export interface RunningDestination {
	url: string;
	stop: () => Promise<void>;
}

const CREATE_TABLE = `
	CREATE TABLE IF NOT EXISTS leads (
		id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		delivery_id text NOT NULL,
		email text NOT NULL,
		name text NOT NULL,
		idempotency_key text,
		created_at timestamptz NOT NULL DEFAULT now()
	)`;

const INSERT_LEAD = `
	INSERT INTO leads (delivery_id, email, name, idempotency_key) VALUES ($1, $2, $3, $4)
	RETURNING id`;

const FIND_LEADS = `
	SELECT id, delivery_id AS "deliveryId", email, name, idempotency_key AS "idempotencyKey", created_at AS "createdAt"
	FROM leads
	WHERE ($1::text IS NULL OR delivery_id = $1) AND ($2::text IS NULL OR email = $2) AND ($3::text IS NULL OR idempotency_key = $3)
	ORDER BY id`;

/**
 * A small CRM, and what its people are told. It stores every lead that it is sent, also twice: were it to drop copies by their
 * idempotency key, nothing in front of it would be put to the test.
 *
 *     POST /leads {deliveryId, email, name}, header Idempotency-Key    201 {id}
 *     GET  /leads?deliveryId=&email=&idempotencyKey=                  the leads stored
 *     GET  /calls?email=                                              how often a lead was sent, whatever came of it
 *     POST /alerts {…}, GET /alerts                                   what the on-call person was told since it started
 *     PUT  /behaviour {"behaviour": "refuse"}                         see Behaviour
 */
export async function startDestination(port: number, database: Database): Promise<RunningDestination> {
	const pool = new Pool(database);
	pool.on('error', () => {});
	await pool.query(CREATE_TABLE);

	let behaviour: Behaviour = 'work';
	const calls = new Map<string, number>();
	const alerts: Array<Record<string, unknown>> = [];

	const routes: Record<string, (request: IncomingMessage, response: ServerResponse, query: URLSearchParams) => void | Promise<void>> = {
		async 'POST /leads'(request, response) {
			const { deliveryId, email, name } = await readJson(request);
			const asTold = behaviour;
			calls.set(String(email), (calls.get(String(email)) ?? 0) + 1);
			if (asTold === 'hang') return;
			if (asTold === 'refuse') return answer(response, 503, { message: 'Closed for maintenance. Nothing was stored.' });
			const key = request.headers['idempotency-key'] ?? null;
			const { rows } = await pool.query<{ id: string }>(INSERT_LEAD, [deliveryId, email, name, key]);
			if (asTold === 'loseAnswer') request.socket.destroy();
			else answer(response, 201, { id: rows[0].id });
		},
		async 'GET /leads'(_request, response, query) {
			const { rows } = await pool.query(FIND_LEADS, [query.get('deliveryId'), query.get('email'), query.get('idempotencyKey')]);
			answer(response, 200, rows);
		},
		'GET /calls'(_request, response, query) {
			answer(response, 200, { calls: calls.get(query.get('email') ?? '') ?? 0 });
		},
		async 'POST /alerts'(request, response) {
			alerts.push(await readJson(request));
			answer(response, 201, { alerts: alerts.length });
		},
		'GET /alerts'(_request, response) {
			answer(response, 200, alerts);
		},
		async 'PUT /behaviour'(request, response) {
			const wanted = (await readJson(request)).behaviour as Behaviour;
			if (!BEHAVIOURS.includes(wanted)) return answer(response, 400, { message: `behaviour is one of ${BEHAVIOURS.join(', ')}` });
			behaviour = wanted;
			answer(response, 200, { behaviour });
		},
	};

	const server = createServer((request, response) => {
		const url = new URL(request.url ?? '/', 'http://127.0.0.1');
		const route = routes[`${request.method} ${url.pathname}`];
		if (!route) return answer(response, 404, { message: 'No such address' });
		Promise.resolve(route(request, response, url.searchParams)).catch((error: Error) => answer(response, 400, { message: error.message }));
	});
	await new Promise<void>((resolve, reject) => {
		server.once('error', reject);
		server.listen(port, '127.0.0.1', resolve);
	});

	return {
		url: `http://127.0.0.1:${port}`,
		async stop() {
			const closed = new Promise((resolve) => server.close(resolve));
			server.closeAllConnections();
			await closed;
			await pool.end();
		},
	};
}

/** The destination as its clients see it, over HTTP. */
export class DestinationClient {
	constructor(private readonly url: string) {}

	/** The leads stored for a delivery, an email address or an idempotency key. */
	async leads(by: { deliveryId?: string; email?: string; idempotencyKey?: string }): Promise<Lead[]> {
		return await this.request<Lead[]>(`/leads?${new URLSearchParams(by).toString()}`);
	}

	/** How often a lead with this address was sent to the destination since it started. */
	async calls(email: string): Promise<number> {
		return (await this.request<{ calls: number }>(`/calls?${new URLSearchParams({ email }).toString()}`)).calls;
	}

	/** What the on-call person was told since the destination started, in order. */
	async alerts(): Promise<Array<Record<string, unknown>>> {
		return await this.request('/alerts');
	}

	async behave(behaviour: Behaviour): Promise<void> {
		await this.request('/behaviour', { method: 'PUT', body: JSON.stringify({ behaviour }) });
	}

	private async request<Answer>(address: string, options?: RequestInit): Promise<Answer> {
		const response = await fetch(this.url + address, options);
		if (!response.ok) throw new Error(`The destination answered ${response.status} to ${address}: ${await response.text()}`);
		return (await response.json()) as Answer;
	}
}

async function readJson(request: IncomingMessage): Promise<Record<string, unknown>> {
	const chunks: Buffer[] = [];
	for await (const chunk of request) chunks.push(chunk as Buffer);
	return JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>;
}

function answer(response: ServerResponse, status: number, body: unknown): void {
	response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
