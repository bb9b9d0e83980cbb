import { Pool } from 'pg';
import { sandboxAddress } from './address';

export interface ClaimRow {
	deliveryId: string;
	source: string;
	environment: string;
	state: string;
	attempt: number;
	reference: string | null;
	reason: string | null;
}

/** The claim table itself, past n8n and past the code under test. */
export class ClaimTable {
	private readonly pool = new Pool({ ...sandboxAddress().claimStoreDatabase, max: 2 });

	/** The rows of one source, by delivery ID. */
	async rows(source: string): Promise<ClaimRow[]> {
		const { rows } = await this.pool.query<ClaimRow>(
			`SELECT delivery_id AS "deliveryId", source, environment, state, attempt,
			        outcome_reference AS reference, outcome_reason AS reason
			   FROM public.idempotent_claims
			  WHERE source = $1
			  ORDER BY delivery_id, environment`,
			[source],
		);
		return rows;
	}

	async close(): Promise<void> {
		await this.pool.end();
	}
}
