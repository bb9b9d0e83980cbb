import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import { OPERATOR } from '../../../sandbox/settings';
import type { Named } from '../../../sandbox/setup';
import { sandboxAddress } from './address';
import { createClaimStore } from './claimStore';
import { createCopy } from './exampleCopy';
import type { N8n, SavedWorkflow } from './n8n';
import { callWebhook } from './webhookCall';
import { completeClaim, idempotentClaim, node, webhook, type PlannedNode, type WorkflowPlan } from './workflow';

/** A row as an operator's decision leaves it. */
export interface DecidedRow {
	state: string;
	version: number;
	attempt: number;
	reference: string | null;
	resolvedBy: string | null;
	history: Array<Record<string, unknown>>;
}

/** What a test wants of a delivery, and of the run that gets it. */
export interface Delivery {
	id: string;
	source?: string;
	lead?: unknown;
	/** How the run ends; without one it leaves its claim in processing. */
	outcome?: 'retryableFailure' | 'outcomeUncertain' | 'needsReview' | 'completed';
	reason?: string;
}

/** The header by which a browser logs in. */
export const LOGIN = { authorization: `Basic ${btoa(`${OPERATOR.user}:${OPERATOR.password}`)}` };

/** The example's desk over a claim table of its own: what other workflows leave behind is not on it. */
export class Desk {
	private readonly pool = new Pool({ ...sandboxAddress().claimStoreDatabase, max: 2 });
	private readonly workflows: SavedWorkflow[] = [];

	private constructor(
		private readonly n8n: N8n,
		/** Of its claim table, and of its address. */
		readonly name: string,
	) {}

	/**
	 * @param settings of the desk's credential, instead of those of the sandbox's store
	 * @param edit what is different in the example's file
	 */
	static async publish(n8n: N8n, settings: Record<string, unknown> = {}, edit = (example: string) => example): Promise<Desk> {
		const { table, credential: store } = await createClaimStore(n8n, 'desk', settings);
		const desk = new Desk(n8n, table);
		const login = (await n8n.rest.get<Named[]>('/rest/credentials')).find(({ name }) => name === 'Sandbox Operator');
		const copy = await createCopy(n8n, 'operator-desk', `Operator Desk at ${table}`, { credentials: { claimStoreApi: store, httpBasicAuth: login }, parameters: { Webhook: { path: table } }, edit });
		await n8n.activate(copy);
		desk.workflows.push(copy, await n8n.publish(planOfSender(table, store)));
		return desk;
	}

	get url(): string {
		return `${sandboxAddress().n8nUrl}/webhook/${this.name}`;
	}

	async close(): Promise<void> {
		for (const workflow of this.workflows) await this.n8n.deactivate(workflow);
		await this.pool.query(`DROP TABLE IF EXISTS public.${this.name}`);
		await this.pool.end();
	}

	/** The workflow whose runs make the claims. */
	get sender(): SavedWorkflow {
		return this.workflows[1];
	}

	/** The runs of the desk that n8n lists. */
	async runsKept(): Promise<string[]> {
		return await this.n8n.executionIds(this.workflows[0]);
	}

	/** A request past any browser, with the operator's login unless the options bring other headers. */
	async request(options: RequestInit = {}): Promise<{ status: number; headers: Headers; text: string }> {
		const response = await fetch(this.url, { headers: LOGIN, ...options });
		return { status: response.status, headers: response.headers, text: await response.text() };
	}

	/** Sends a form past any browser. */
	async post(fields: Record<string, string> | Array<[string, string]>): Promise<{ status: number; text: string }> {
		return await this.request({ method: 'POST', body: new URLSearchParams(fields) });
	}

	/** What the form of a claim carries: the desk's key, and the handle of the record that is shown. */
	async formOf(deliveryId: string): Promise<{ key: string; handle: string }> {
		const { text } = await this.request();
		const form = text.slice(text.indexOf(`Completed: ${deliveryId}"`));
		const valueOf = (name: string) => new RegExp(`name="${name}" value="([^"]+)"`).exec(form)?.[1] ?? '';
		return { key: valueOf('key'), handle: valueOf('handle') };
	}

	/** Makes claims as senders and workflows make them. @returns the handle of the last one's run */
	async deliver(...deliveries: Delivery[]): Promise<string> {
		let handle = '';
		for (const delivery of deliveries) {
			const { claim } = await this.send<{ claim: { handle: string } }>('sender', { source: 'my-shop', ...delivery });
			handle = claim.handle;
		}
		return handle;
	}

	/** Stores deliveries for later work. */
	async receive(...deliveries: Delivery[]): Promise<void> {
		for (const delivery of deliveries) await this.send('inbox', { source: 'my-shop', ...delivery });
	}

	/** A run that holds this handle says how it ended. @returns what Complete Claim says to it */
	async finish(handle: string, outcome: { outcome: Delivery['outcome']; reason?: string; reference?: string }): Promise<{ status: string; reason: string }> {
		return (await this.send<{ claim: { status: string; reason: string } }>('finish', { handle, ...outcome })).claim;
	}

	private async send<Answer>(to: string, body: object): Promise<Answer> {
		const { status, text } = await callWebhook(`${this.name}-${to}`, body);
		if (status !== 200) throw new Error(`${JSON.stringify(body)} was answered with ${status}`);
		return JSON.parse(text) as Answer;
	}

	/** Makes a claim look as old as this, its steps so many minutes apart; a lease that it has is over. */
	async age(deliveryId: string, hours: number, minutesBetween = 1): Promise<void> {
		await this.pool.query(
			`UPDATE public.${this.name} AS claim
			    SET first_seen_at = begun, updated_at = begun,
			        retry_at = begun + (claim.retry_at - claim.first_seen_at),
			        lease_expires_at = begun + (claim.lease_expires_at - claim.first_seen_at),
			        history = (SELECT jsonb_agg(entry || jsonb_build_object('at', begun + make_interval(mins => $3 * (place - 1)::integer)) ORDER BY place)
			                     FROM jsonb_array_elements(claim.history) WITH ORDINALITY AS step (entry, place))
			   FROM (SELECT clock_timestamp() - make_interval(hours => $2)) AS past (begun)
			  WHERE delivery_id = $1`,
			[deliveryId, hours, minutesBetween],
		);
	}

	/** Makes so many more claims of one, named after it. */
	async copy(deliveryId: string, count: number): Promise<void> {
		await this.pool.query(
			`INSERT INTO public.${this.name}
			 SELECT (jsonb_populate_record(claim, jsonb_build_object('delivery_id', claim.delivery_id || '-' || number))).*
			   FROM public.${this.name} AS claim, generate_series(1, $2::integer) AS number
			  WHERE delivery_id = $1`,
			[deliveryId, count],
		);
	}

	/** A statement about the desk's own claim table, which it names `claims`. */
	async sql(statement: string): Promise<void> {
		await this.pool.query(statement.replaceAll('claims', `public.${this.name}`));
	}

	async row(deliveryId: string): Promise<DecidedRow> {
		const { rows } = await this.pool.query<DecidedRow>(
			`SELECT state, version, attempt, outcome_reference AS reference, resolved_by AS "resolvedBy", history FROM public.${this.name} WHERE delivery_id = $1`,
			[deliveryId],
		);
		if (rows.length !== 1) throw new Error(`There are ${rows.length} claims of ${deliveryId}`);
		return rows[0];
	}
}

/** What makes the desk's claims: a run that ends as the delivery asks for, an inbox that only stores, and a run that says later how it ended. */
function planOfSender(webhookPath: string, claimStoreApi: Named): WorkflowPlan {
	const withStore = (planned: PlannedNode): PlannedNode => ({ ...planned, extra: { credentials: { claimStoreApi } } });
	const named = (name: string, planned: PlannedNode): PlannedNode => ({ ...planned, name });
	const identity = { source: '={{ $json.body.source }}', deliveryId: '={{ $json.body.id }}', action: 'create-lead', options: { eventType: 'lead.created' } };
	const outcome = { outcome: '={{ $json.body.outcome }}', reason: '={{ $json.body.reason }}', outcomeReference: '={{ $json.body.reference }}', retryAfterSeconds: 0 };
	const asksForOutcome = { id: randomUUID(), leftValue: '={{ $json.body.outcome }}', rightValue: '', operator: { type: 'string', operation: 'exists', singleValue: true } };
	return {
		name: `Sender of ${webhookPath}`,
		nodes: [
			named('Sender', webhook(`${webhookPath}-sender`, 'lastNode')),
			withStore(idempotentClaim(identity)),
			node('if', 2.2, { conditions: { options: { version: 2, typeValidation: 'strict' }, combinator: 'and', conditions: [asksForOutcome] }, options: {} }),
			withStore(completeClaim(outcome)),
			named('Inbox', webhook(`${webhookPath}-inbox`, 'lastNode')),
			withStore(idempotentClaim({ ...identity, operation: 'receive' }, 'Receive')),
			named('Run', webhook(`${webhookPath}-finish`, 'lastNode')),
			withStore(completeClaim({ ...outcome, claimFrom: 'handle', handle: '={{ $json.body.handle }}' }, 'Record Outcome')),
			node('noOp', 1, {}),
		],
		wires: ['Sender > Idempotent Claim', 'Idempotent Claim > if', 'if > Complete Claim', 'if:1 > noOp', 'Inbox > Receive', 'Run > Record Outcome', 'Record Outcome > noOp', 'Record Outcome:1 > noOp'],
	};
}
