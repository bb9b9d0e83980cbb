import { randomBytes } from 'node:crypto';
import { Client, type QueryResultRow } from 'pg';

/** Where a PostgreSQL listens and who may log in. */
export interface ServerAddress {
	host: string;
	port: number;
	user: string;
	password: string;
}

/** A database of one test file, and a way past the code under test to what is really in it. */
export interface TestDatabase extends ServerAddress {
	readonly database: string;
	/** Runs one statement as the owner of the server and returns its rows. */
	query<Row extends QueryResultRow = QueryResultRow>(sql: string, values?: unknown[]): Promise<Row[]>;
	/** Removes the database, also while pools of the code under test still hold connections. */
	drop(): Promise<void>;
}

let databasesMade = 0;

/** The server that globalSetup started for this run. */
export function testServer(): ServerAddress {
	const { TEST_PG_HOST, TEST_PG_PORT, TEST_PG_USER, TEST_PG_PASSWORD } = process.env;
	if (!TEST_PG_HOST || !TEST_PG_PORT || !TEST_PG_USER || !TEST_PG_PASSWORD) {
		throw new Error('No test server: run the tests with jest, whose globalSetup starts PostgreSQL');
	}
	return { host: TEST_PG_HOST, port: Number(TEST_PG_PORT), user: TEST_PG_USER, password: TEST_PG_PASSWORD };
}

/** Makes an empty database, by default on the server of this run. */
export async function createTestDatabase(server: ServerAddress = testServer()): Promise<TestDatabase> {
	const database = `test_${++databasesMade}_${randomBytes(6).toString('hex')}`;
	await inMaintenance(server, `CREATE DATABASE ${database}`);
	// As it is from PostgreSQL 15 on; before, everybody might create tables there.
	await inMaintenance(server, 'REVOKE CREATE ON SCHEMA public FROM PUBLIC', database);
	let admin: Client | undefined;

	return {
		...server,
		database,
		async query<Row extends QueryResultRow>(sql: string, values?: unknown[]) {
			admin ??= await connectAs(server, database, () => (admin = undefined));
			return (await admin.query<Row>(sql, values)).rows;
		},
		async drop() {
			await admin?.end();
			await inMaintenance(server, `DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
		},
	};
}

/** A test may take the server down under this connection: `whenLost` lets the next query make its own. */
async function connectAs(server: ServerAddress, database: string, whenLost: () => void): Promise<Client> {
	const client = new Client({ ...server, database });
	client.on('error', whenLost);
	await client.connect();
	return client;
}

async function inMaintenance(server: ServerAddress, statement: string, database = 'postgres'): Promise<void> {
	const client = new Client({ ...server, database });
	await client.connect();
	try {
		await client.query(statement);
	} finally {
		await client.end();
	}
}
