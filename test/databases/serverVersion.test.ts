import { createTestDatabase, type ServerAddress } from '../support/database';
import { startOwnPostgres } from '../support/ownPostgres';

/** The servers of a test run are of the version that it is for: the newest, or the one that `test:versions` says. */

const EXPECTED = Number(process.env.TEST_POSTGRES || 18);

async function majorVersion(server?: ServerAddress): Promise<number> {
	const database = await createTestDatabase(server);
	const [{ version }] = await database.query<{ version: string }>(`SELECT current_setting('server_version_num') AS version`);
	await database.drop();
	return Math.floor(Number(version) / 10_000);
}

test(`PostgreSQL ${EXPECTED} serves all tests`, async () => {
	expect(await majorVersion()).toBe(EXPECTED);
});

test(`PostgreSQL ${EXPECTED} is what a test starts for itself`, async () => {
	const own = await startOwnPostgres();
	try {
		expect(await majorVersion(own)).toBe(EXPECTED);
	} finally {
		await own.remove();
	}
});
