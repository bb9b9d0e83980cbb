import type { TestDatabase } from '../test/support/database';
import type { Job } from './rounds';

/** `new`: claims of deliveries never seen. `duplicate`: of completed ones, answered with their record. `completed`: outcomes of open claims. */
export type Kind = 'new' | 'duplicate' | 'completed';

/** Whoever does the work that is measured. */
export interface Contestant {
	/**
	 * Makes ready what the work needs, which is not measured, and the work itself: so many deliveries, `perCall` of them
	 * in each job.
	 */
	jobs(kind: Kind, count: number, perCall?: number): Promise<Job[]>;
}

/** Connections of each contestant: what the credential offers when nobody changes it. */
export const CONNECTIONS = 10;

/**
 * Gives each a table that has been in use: with completed claims in it, vacuumed and analyzed, as autovacuum leaves it.
 * Plans for a table that PostgreSQL knows nothing of are another matter, and last a minute.
 */
export async function makeUsed(database: TestDatabase, contestants: readonly Contestant[], claims: number): Promise<void> {
	for (const contestant of contestants) await contestant.jobs('duplicate', claims);
	const tables = await database.query<{ name: string }>(`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`);
	await database.query(`VACUUM (ANALYZE) ${tables.map(({ name }) => name).join(', ')}`);
}
