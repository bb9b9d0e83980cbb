import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Sandbox } from '../sandbox';
import { signed, type LeadEvent } from '../sender';

const SOURCE = 'example-crm';
/** Recovery looks every five seconds here; looking the lead up and acting are two executions. */
const SECONDS_TO_RECOVER = 60;

/** An event as it is posted: scenarios bend its ID, or leave it out. */
export type PostedEvent = Omit<LeadEvent, 'id'> & { id?: unknown };

/** An HTTP status, or that the connection ended without one. */
export type Answer = number | 'no answer';

/** What the outside world can see after a step. */
export interface Observation {
	/** What the sender got, in this step. */
	answers: Answer[];
	/** How often this e-mail address was sent to the destination since the scenario began. */
	calls: number;
	/** How many leads with this e-mail address the destination stores. */
	leads: number;
	/** The claim store's record of the delivery. */
	record: string;
	/** The states that the claim went through, as its history tells; only where the way matters. */
	history?: string[];
}

export interface Step {
	when: string;
	expected: Observation;
	observed: Observation;
	held: boolean;
}

export interface Scenario {
	title: string;
	/** What a reader should know who wonders at the result. */
	note?: string;
	run(row: Row): Promise<void>;
}

/** One row of the demonstration: acts as the sender, and inspects destination and claim store. */
export class Row {
	readonly steps: Step[] = [];
	private recordsBefore = 0;

	private constructor(readonly sandbox: Sandbox) {}

	static async begin(sandbox: Sandbox): Promise<Row> {
		const row = new Row(sandbox);
		row.recordsBefore = await row.countRecords();
		return row;
	}

	async deliver(event: PostedEvent): Promise<Answer> {
		try {
			const response = await fetch(this.sandbox.workflows['guarded-webhook'].webhookUrl, {
				method: 'POST',
				...signed(event),
			});
			await response.arrayBuffer();
			return response.status;
		} catch {
			return 'no answer';
		}
	}

	/** Does one step, looks at destination and claim store, and compares with what must be. */
	async step(when: string, event: PostedEvent, expected: Observation, act: () => Promise<Answer[]>): Promise<void> {
		const answers = await act();
		const leads = await this.sandbox.destination.leads({ email: event.lead.email });
		const observed: Observation = {
			answers,
			calls: await this.sandbox.destination.calls(event.lead.email),
			leads: leads.length,
			record: await this.describeRecord(event, leads.map(({ id }) => id)),
			...(expected.history && { history: await this.history(event) }),
		};
		this.steps.push({ when, expected, observed, held: isDeepStrictEqual(observed, expected) });
	}

	/** Waits until a recovery workflow has finished this claim; should none do so, the step shows how far it came. */
	async whenRecovered(event: PostedEvent): Promise<void> {
		const deadline = Date.now() + SECONDS_TO_RECOVER * 1000;
		while ((await this.history(event)).at(-1) !== 'completed' && Date.now() < deadline) await sleep(200);
	}

	private async history(event: PostedEvent): Promise<string[]> {
		const { rows } = await this.sandbox.claimStore.query<{ history: Array<{ state: string }> }>(
			'SELECT history FROM public.idempotent_claims WHERE delivery_id = $1 AND source = $2',
			[event.id, SOURCE],
		);
		const states = (rows[0]?.history ?? []).map(({ state }) => state);
		// A claim that changes its owner, and not its state, has one more entry.
		return states.filter((state, place) => state !== states[place - 1]);
	}

	/** Changes the delivery's record as time would: `assignments` is SQL. */
	async age(event: PostedEvent, assignments: string): Promise<void> {
		await this.sandbox.claimStore.query(
			`UPDATE public.idempotent_claims SET ${assignments} WHERE delivery_id = $1 AND source = $2`,
			[event.id, SOURCE],
		);
	}

	/** Deletes the delivery's record under the rule for purging: finished, and past its retention. */
	async purge(event: PostedEvent): Promise<void> {
		await this.sandbox.claimStore.query(
			`DELETE FROM public.idempotent_claims WHERE delivery_id = $1 AND source = $2 AND state = 'completed' AND purge_after < now()`,
			[event.id, SOURCE],
		);
	}

	private async describeRecord(event: PostedEvent, leadIds: string[]): Promise<string> {
		const { rows } = await this.sandbox.claimStore.query<{ state: string; attempt: number; reference: string | null }>(
			'SELECT state, attempt, outcome_reference AS reference FROM public.idempotent_claims WHERE delivery_id = $1 AND source = $2',
			[event.id, SOURCE],
		);
		if (rows.length === 0) {
			const unexpected = (await this.countRecords()) - this.recordsBefore;
			return unexpected > 0 ? `${unexpected} under another ID` : 'none';
		}
		return rows
			.map(({ state, attempt, reference }) => {
				const named = reference === null ? '' : leadIds.includes(reference) ? ', names its lead' : ', names an unknown lead';
				return `${state}, attempt ${attempt}${named}`;
			})
			.join(' and ');
	}

	private async countRecords(): Promise<number> {
		const { claimStore } = this.sandbox;
		// The first claim ever makes the table.
		const { rows: tables } = await claimStore.query<{ present: boolean }>(`SELECT to_regclass('public.idempotent_claims') IS NOT NULL AS present`);
		if (!tables[0].present) return 0;
		const { rows } = await claimStore.query<{ count: number }>('SELECT count(*)::int AS count FROM public.idempotent_claims');
		return rows[0].count;
	}
}
