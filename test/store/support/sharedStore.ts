import { openClaimStore, type ClaimStore } from '../../../store/claimStore';
import { createTestDatabase, type TestDatabase } from '../../support/database';
import { settingsFor } from './claims';

/** Opens a store over a database of its own for all tests of a file, and takes both down after them. */
export function shareStore(keep: (shared: { database: TestDatabase; store: ClaimStore }) => void): void {
	let database: TestDatabase | undefined;
	let store: ClaimStore | undefined;
	beforeAll(async () => {
		database = await createTestDatabase();
		store = openClaimStore(settingsFor(database));
		keep({ database, store });
	});
	afterAll(async () => {
		await store?.close();
		await database?.drop();
	});
}
