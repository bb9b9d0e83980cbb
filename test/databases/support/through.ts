import { Client } from 'pg';
import { openClaimStore, type ClaimStore } from '../../../store/claimStore';
import type { ClaimStoreCredential } from '../../../store/connection/settings';
import { settingsFor } from '../../store/support/claims';
import { createTestDatabase, type ServerAddress, type TestDatabase } from '../../support/database';
import { startPgBouncer, type PgBouncer } from './pgbouncer';

/** A database, a PgBouncer before it, and stores that reach the one through the other. */
export class Through {
	private readonly stores: ClaimStore[] = [];

	private constructor(
		readonly database: TestDatabase,
		readonly pooler: PgBouncer,
	) {}

	static async pgBouncer(settings: Record<string, string | number>, server?: ServerAddress): Promise<Through> {
		const database = await createTestDatabase(server);
		return new Through(database, await startPgBouncer({ server, settings }));
	}

	/** As a node has it. */
	store(changes: ClaimStoreCredential = {}, onDrop?: (line: string) => void): ClaimStore {
		const store = openClaimStore(settingsFor(this.address, changes), onDrop);
		this.stores.push(store);
		return store;
	}

	/** Past PgBouncer: for what has to be there before. */
	directStore(): ClaimStore {
		const store = openClaimStore(settingsFor(this.database));
		this.stores.push(store);
		return store;
	}

	get address(): ServerAddress & { database: string } {
		const { host, port, user, password } = this.pooler;
		return { host, port, user, password, database: this.database.database };
	}

	/** A client of PgBouncer that is none of ours. */
	async client(): Promise<Client> {
		const client = new Client(this.address);
		client.on('error', () => {});
		await client.connect();
		return client;
	}

	/** Another session, past PgBouncer, in the middle of its transaction. */
	holder(): { take(deliveryId: string): Promise<void>; letGo(): Promise<void> } {
		const client = new Client({ ...this.database });
		return {
			async take(deliveryId) {
				await client.connect();
				await client.query('BEGIN');
				await client.query('SELECT FROM idempotent_claims WHERE delivery_id = $1 FOR UPDATE', [deliveryId]);
			},
			async letGo() {
				await client.query('ROLLBACK');
				await client.end();
			},
		};
	}

	async count(): Promise<number> {
		return (await this.database.query<{ count: number }>('SELECT count(*)::int AS count FROM idempotent_claims'))[0].count;
	}

	/** Closes the lines of all stores that were opened so far. */
	async closeStores(): Promise<void> {
		await Promise.all(this.stores.splice(0).map(async (store) => await store.close()));
	}

	async close(): Promise<void> {
		await this.closeStores();
		await this.pooler.remove();
		await this.database.drop();
	}
}
