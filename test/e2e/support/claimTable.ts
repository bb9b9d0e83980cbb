import { Pool } from 'pg';
import { sandboxAddress, type SandboxAddress } from './address';

export interface ClaimRow {
	deliveryId: string;
	source: string;
	environment: string;
	state: string;
	attempt: number;
	reference: string | null;
	reason: string | null;
	/** Each state that it was in. */
	history: Array<{ state: string; version: number; reason: string | null }>;
}

/** The claim table itself, past n8n and past the code under test. */
export class ClaimTable {
	/** For statements that only one test file needs. */
	readonly pool: Pool;

	/** The sandbox's, or another n8n's. */
	constructor({ claimStoreDatabase }: Pick<SandboxAddress, 'claimStoreDatabase'> = sandboxAddress()) {
		this.pool = new Pool({ ...claimStoreDatabase, max: 2 });
	}

	/** The rows of one source, all or of these deliveries, by delivery ID. */
	async rows(source: string, deliveryIds?: string[]): Promise<ClaimRow[]> {
		return await this.select('source = $1 AND ($2::text[] IS NULL OR delivery_id = ANY ($2))', source, deliveryIds ?? null);
	}

	/** The row of one production delivery. */
	async row(source: string, deliveryId: string): Promise<ClaimRow | undefined> {
		return (await this.select(`source = $1 AND delivery_id = $2 AND environment = 'live'`, source, deliveryId)).at(0);
	}

	/** Changes the rows of one source, or one delivery's, as time or a person would: `change(source, LEASE_OVER)`. */
	async change(source: string, assignments: string, deliveryId?: string): Promise<void> {
		await this.pool.query(`UPDATE public.idempotent_claims SET ${assignments} WHERE source = $1 AND ($2::text IS NULL OR delivery_id = $2)`, [source, deliveryId ?? null]);
	}

	async close(): Promise<void> {
		await this.pool.end();
	}

	private async select(which: string, ...values: Array<string | string[] | null>): Promise<ClaimRow[]> {
		const { rows } = await this.pool.query<ClaimRow>(
			`SELECT delivery_id AS "deliveryId", source, environment, state, attempt,
			        outcome_reference AS reference, outcome_reason AS reason, history
			   FROM public.idempotent_claims
			  WHERE ${which}
			  ORDER BY delivery_id, environment`,
			values,
		);
		return rows;
	}
}
