import globalSetup from '../../support/globalSetup';
import { requirePgBouncer } from './pgbouncer';

/** The usual server, and PgBouncer's program, without which every test here would fail in its own words. */
export default async function poolerSetup(): Promise<void> {
	requirePgBouncer();
	await globalSetup();
}
