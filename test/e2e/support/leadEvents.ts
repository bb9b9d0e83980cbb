import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { DestinationClient } from '../../../sandbox/destination';
import { signed, type LeadEvent } from '../../../sandbox/sender';
import { LEASE_OVER, RETRY_DUE } from '../../support/timePassed';
import { sandboxAddress, type SandboxAddress } from './address';
import { ClaimTable, type ClaimRow } from './claimTable';
import { until } from './until';

/** What the claim store and the destination hold of an event. */
export interface Found {
	state: string | undefined;
	attempt: number | undefined;
	reference: string | null | undefined;
	reason: string | null | undefined;
	/** The IDs of its leads. */
	leads: string[];
}

const SOURCE = 'example-crm';
/** What n8n says, with status 200, to any request that comes while it starts; see docs/guarantees.md, "Limits". */
export const NOT_READY = 'n8n is starting up';
/** Recovery looks every five seconds here; the slowest way takes three looks. */
const SECONDS_TO_RECOVER = 120;
const PATIENCE_MS = 120_000;

/** A sender that keeps to a pace, and comes again. */
const SENDERS_AT_ONCE = 12;
const SENDER_WAITS_MS = 10_000;
const SENDER_COMES_AGAIN_MS = 1_000;

/** The examples' events, sent, and looked for in the claim table and at the destination, past n8n. */
export class LeadEvents {
	readonly destination = new DestinationClient(sandboxAddress().destinationUrl);
	private readonly claims: ClaimTable;
	private over = false;

	/** Those of the sandbox's n8n, or of another one. */
	constructor(private readonly at: Pick<SandboxAddress, 'workflows' | 'claimStoreDatabase'> = sandboxAddress()) {
		this.claims = new ClaimTable(at);
	}

	/** Ends the senders as well, which otherwise come again for ever. */
	async close(): Promise<void> {
		this.over = true;
		await this.claims.close();
	}

	/**
	 * Posts an event to an example's webhook, by a connection of its own: fetch shares some, and waited for ever on one whose n8n was killed.
	 *
	 * @returns the status that the sender is told; 503 where n8n is not ready, as a proxy in front that asks for its readiness would say
	 */
	async send(example: string, event: unknown, patienceMs = PATIENCE_MS): Promise<number | 'no answer'> {
		return await new Promise((resolve) => {
			const { body, headers } = signed(event);
			const call = request(this.at.workflows[example].webhookUrl, { method: 'POST', agent: false, headers });
			const outOfPatience = setTimeout(() => call.destroy(), patienceMs);
			call.once('response', (response) => {
				const { statusCode = 'no answer' } = response;
				text(response).then((said) => resolve(said.startsWith(NOT_READY) ? 503 : statusCode), () => undefined);
			});
			call.once('error', () => undefined);
			call.once('close', () => {
				clearTimeout(outOfPatience);
				resolve('no answer');
			});
			call.end(body);
		});
	}

	/**
	 * Like a real sender: delivers at a steady pace, and each delivery again until it hears 200.
	 *
	 * @param paceMs from one delivery to the next
	 * @returns how often it had to come again
	 */
	async sendAll(example: string, deliveries: LeadEvent[], paceMs: number): Promise<number> {
		let repeats = 0;
		const deliver = async (event: LeadEvent) => {
			while (!this.over && (await this.send(example, event, SENDER_WAITS_MS)) !== 200) {
				repeats += 1;
				await sleep(SENDER_COMES_AGAIN_MS);
			}
		};
		const underWay = new Set<Promise<void>>();
		for (const event of deliveries) {
			while (underWay.size >= SENDERS_AT_ONCE) await Promise.race(underWay);
			const delivery = deliver(event).finally(() => underWay.delete(delivery));
			underWay.add(delivery);
			await sleep(paceMs);
		}
		await Promise.all(underWay);
		return repeats;
	}

	/** How each of these stands, by delivery ID; what was never stored is missing. */
	async settlements(events: LeadEvent[]): Promise<ClaimRow[]> {
		return await this.claims.rows(SOURCE, events.map(({ id }) => id));
	}

	/** What is under a lease and has not changed for so long belongs to the dead: ends the leases, as time would. */
	async endLeases(unchangedForSeconds = 0): Promise<void> {
		await this.claims.pool.query(
			`UPDATE public.idempotent_claims SET ${LEASE_OVER}
			  WHERE state IN ('processing', 'outcome_uncertain') AND lease_expires_at > now() AND updated_at <= now() - make_interval(secs => $1)`,
			[unchangedForSeconds],
		);
	}

	/** Of each settlement: `one lead`, `waits for a person`, or what is wrong with it. */
	async verdicts(settlements: ClaimRow[]): Promise<string[]> {
		const leads = await this.destination.leads({});
		return settlements.map(({ deliveryId, state, reference, reason }) => {
			const ids = leads.filter((lead) => lead.deliveryId === deliveryId).map(({ id }) => id);
			if (ids.length > 1) return `doubled: ${deliveryId} has the leads ${ids.join(', ')}`;
			if (state === 'completed') return ids[0] === reference ? 'one lead' : `wrong: ${deliveryId} names ${reference} and has ${ids[0]}`;
			return reason ? 'waits for a person' : `wrong: ${deliveryId} waits without a reason`;
		});
	}

	async found({ id }: LeadEvent): Promise<Found> {
		const { state, attempt, reference, reason } = (await this.claims.row(SOURCE, id)) ?? {};
		return { state, attempt, reference, reason, leads: (await this.destination.leads({ deliveryId: id })).map((lead) => lead.id) };
	}

	/** The event's history, in order: each state, with the reason in brackets where there is one. */
	async story({ id }: LeadEvent): Promise<string[]> {
		return ((await this.claims.row(SOURCE, id))?.history ?? []).map(({ state, reason }) => (reason === null ? state : `${state} (${reason})`));
	}

	async whenIn(state: string, { id }: LeadEvent): Promise<void> {
		await until(`${id} is ${state}`, SECONDS_TO_RECOVER, async () => (await this.claims.row(SOURCE, id))?.state === state);
	}

	/** Lets the time pass until the event's retry is due. */
	async retryIsDue({ id }: LeadEvent): Promise<void> {
		await this.claims.change(SOURCE, RETRY_DUE, id);
	}

	/** Whether a payload of this email address is stored, under whatever identity. */
	async isStored({ lead }: LeadEvent): Promise<boolean> {
		const { rows } = await this.claims.pool.query('SELECT FROM public.idempotent_claims WHERE strpos(payload::text, $1) > 0', [lead.email]);
		return rows.length > 0;
	}
}
