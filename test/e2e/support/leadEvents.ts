import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { Pool } from 'pg';
import { DestinationClient } from '../../../sandbox/destination';
import { RETRY_DUE } from '../../support/timePassed';
import { sandboxAddress } from './address';
import { until } from './until';

/** What the example workflows speak of: one sender's events, each of which is to become one lead. */
export interface LeadEvent {
	id: string;
	type: 'lead.created';
	lead: { email: string; name: string };
}

export function newEvent(id = `evt_${randomUUID()}`): LeadEvent {
	return { id, type: 'lead.created', lead: { email: `${id}@example.com`, name: 'Example Lead' } };
}

/** What the claim store and the destination hold of an event. */
export interface Found {
	state: string | undefined;
	attempt: number | undefined;
	reference: string | null | undefined;
	reason: string | null | undefined;
	/** The IDs of its leads. */
	leads: string[];
}

interface HistoryEntry {
	state: string;
	reason: string | null;
}

interface Row {
	state: string;
	attempt: number;
	reference: string | null;
	reason: string | null;
	history: HistoryEntry[];
}

const SOURCE = 'example-crm';
/** Recovery looks every five seconds here; the slowest way takes three looks. */
const SECONDS_TO_RECOVER = 120;
const PATIENCE_MS = 120_000;

/** The examples' events, sent, and looked for in the claim table and at the destination, past n8n. */
export class LeadEvents {
	readonly destination = new DestinationClient(sandboxAddress().destinationUrl);
	private readonly pool = new Pool({ ...sandboxAddress().claimStoreDatabase, max: 2 });

	async close(): Promise<void> {
		await this.pool.end();
	}

	/**
	 * Posts an event to an example's webhook, by a connection of its own: fetch shares some, and waited for ever on one whose n8n was killed.
	 *
	 * @returns the status that the sender is told
	 */
	async send(example: string, event: unknown, patienceMs = PATIENCE_MS): Promise<number | 'no answer'> {
		return await new Promise((resolve) => {
			const call = request(sandboxAddress().workflows[example].webhookUrl, { method: 'POST', agent: false, headers: { 'content-type': 'application/json' } });
			const outOfPatience = setTimeout(() => call.destroy(), patienceMs);
			call.once('response', (response) => response.resume().once('end', () => resolve(response.statusCode ?? 'no answer')));
			call.once('error', () => undefined);
			call.once('close', () => {
				clearTimeout(outOfPatience);
				resolve('no answer');
			});
			call.end(JSON.stringify(event));
		});
	}

	async found({ id }: LeadEvent): Promise<Found> {
		const { state, attempt, reference, reason } = (await this.row(id)) ?? {};
		return { state, attempt, reference, reason, leads: (await this.destination.leads({ deliveryId: id })).map((lead) => lead.id) };
	}

	/** The event's history, in order: each state, with the reason in brackets where there is one. */
	async story({ id }: LeadEvent): Promise<string[]> {
		return ((await this.row(id))?.history ?? []).map(({ state, reason }) => (reason === null ? state : `${state} (${reason})`));
	}

	async whenIn(state: string, { id }: LeadEvent): Promise<void> {
		await until(`${id} is ${state}`, SECONDS_TO_RECOVER, async () => (await this.row(id))?.state === state);
	}

	/** Lets the time pass until the event's retry is due. */
	async retryIsDue({ id }: LeadEvent): Promise<void> {
		await this.pool.query(`UPDATE public.idempotent_claims SET ${RETRY_DUE} WHERE source = $1 AND delivery_id = $2`, [SOURCE, id]);
	}

	/** Whether a payload of this email address is stored, under whatever identity. */
	async isStored({ lead }: LeadEvent): Promise<boolean> {
		const { rows } = await this.pool.query('SELECT FROM public.idempotent_claims WHERE strpos(payload::text, $1) > 0', [lead.email]);
		return rows.length > 0;
	}

	private async row(id: string): Promise<Row | undefined> {
		const { rows } = await this.pool.query<Row>(
			`SELECT state, attempt, outcome_reference AS reference, outcome_reason AS reason, history
			   FROM public.idempotent_claims
			  WHERE source = $1 AND delivery_id = $2 AND environment = 'live'`,
			[SOURCE, id],
		);
		return rows[0];
	}
}
