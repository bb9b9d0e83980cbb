import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import type { TestDatabase } from '../test/support/database';
import { CONNECTIONS, type Contestant, type Kind } from './contestant';
import type { Job } from './rounds';

interface Delivery {
	id: string;
	token: string;
	payload: string | null;
}

/**
 * The least that could do the job, as somebody would write it who needs nothing else: a key, a token, and INSERT … ON
 * CONFLICT DO NOTHING, one awaited statement for each delivery. No lease, no history, no retry, no lost answer.
 */
export class HandWritten implements Contestant {
	private readonly known: Delivery[] = [];

	private constructor(
		private readonly pool: Pool,
		private readonly payload: (() => string) | undefined,
	) {}

	private get table(): 'by_hand' | 'by_hand_with_payload' {
		return this.payload ? 'by_hand_with_payload' : 'by_hand';
	}

	/** @param payload what each delivery says, where that is stored too */
	static async open({ host, port, user, password, database }: TestDatabase, payload?: () => string): Promise<HandWritten> {
		const pool = new Pool({ host, port, user, password, database, max: CONNECTIONS });
		// The server may be stopped before the pool is.
		pool.on('error', () => {});
		await pool.query('CREATE TABLE IF NOT EXISTS by_hand (id text PRIMARY KEY, token text NOT NULL)');
		await pool.query('CREATE TABLE IF NOT EXISTS by_hand_with_payload (id text PRIMARY KEY, token text NOT NULL, payload json NOT NULL)');
		// A column of its own for what a completion writes; it is in no index.
		await pool.query('CREATE TABLE IF NOT EXISTS by_hand_completed (id text PRIMARY KEY, token text NOT NULL, completed boolean NOT NULL DEFAULT false)');
		return new HandWritten(pool, payload);
	}

	/** Whether this call was the first of its ID; of a later one, the row is read. */
	async claim({ id, token, payload }: Delivery): Promise<'new' | 'duplicate'> {
		const { rowCount } =
			payload === null
				? await this.pool.query('INSERT INTO by_hand (id, token) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING RETURNING id, token', [id, token])
				: await this.pool.query('INSERT INTO by_hand_with_payload (id, token, payload) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING RETURNING id, token', [id, token, payload]);
		if (rowCount === 1) return 'new';
		const { rows } = await this.pool.query<{ id: string; token: string }>(`SELECT id, token FROM ${this.table} WHERE id = $1`, [id]);
		if (rows.length !== 1) throw new Error('By hand: a delivery was neither inserted nor found');
		return 'duplicate';
	}

	private async complete({ id, token }: Delivery): Promise<void> {
		const { rowCount } = await this.pool.query('UPDATE by_hand_completed SET completed = true WHERE id = $1 AND token = $2 AND NOT completed RETURNING id, token, completed', [id, token]);
		if (rowCount !== 1) throw new Error('By hand: a completion found nothing to complete');
	}

	/** One statement for each delivery, however many a job has. */
	async jobs(kind: Kind, count: number, perCall = 1): Promise<Job[]> {
		const deliveries = await this.deliveries(kind, count);
		return Array.from({ length: Math.ceil(count / perCall) }, (_, job) => async () => {
			for (const delivery of deliveries.slice(job * perCall, (job + 1) * perCall)) await this.do(kind, delivery);
		});
	}

	private async do(kind: Kind, delivery: Delivery): Promise<void> {
		if (kind === 'completed') return await this.complete(delivery);
		const answer = await this.claim(delivery);
		if (answer !== kind) throw new Error(`By hand: a delivery is "${answer}" instead of "${kind}"`);
	}

	private async deliveries(kind: Kind, count: number): Promise<Delivery[]> {
		if (kind === 'duplicate') {
			const missing = this.deliver(Math.max(0, count - this.known.length));
			await this.insert(missing);
			this.known.push(...missing);
			return this.known.slice(0, count).map((delivery) => ({ ...delivery, token: randomUUID() }));
		}
		const deliveries = this.deliver(count);
		if (kind === 'completed') await this.insert(deliveries, 'by_hand_completed');
		return deliveries;
	}

	/** Deliveries never seen. */
	deliver(count: number): Delivery[] {
		return Array.from({ length: count }, () => ({ id: randomUUID(), token: randomUUID(), payload: this.payload?.() ?? null }));
	}

	private async insert(deliveries: readonly Delivery[], table: string = this.table): Promise<void> {
		const column = (name: keyof Delivery) => deliveries.map((delivery) => delivery[name]);
		if (table === 'by_hand_with_payload') await this.pool.query('INSERT INTO by_hand_with_payload (id, token, payload) SELECT id, token, payload::json FROM unnest($1::text[], $2::text[], $3::text[]) AS item (id, token, payload)', [column('id'), column('token'), column('payload')]);
		else await this.pool.query(`INSERT INTO ${table} (id, token) SELECT * FROM unnest($1::text[], $2::text[])`, [column('id'), column('token')]);
	}

	async close(): Promise<void> {
		await this.pool.end();
	}
}
