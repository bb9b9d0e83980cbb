import { Connection, type Row } from './connection/connection';
import type { ConnectionSettings } from './connection/settings';
import type { OpenLine } from './connection/tunnel';
import { asClaimError } from './errors';
import { CLAIM_COLUMNS, CLAIM_TABLE, isBehind, versionTrouble, type TableDefinition } from './table/claimTable';
import { inspectTable } from './table/inspection';

/** What an inspection of the store found. `problems` is empty when claims can be made safely. */
export interface StoreCheck {
	/** One sentence for the good case. */
	summary: string;
	/** Each in plain words: what is wrong, and what to do. */
	problems: string[];
}

/** Longest wait of the check for one answer, in milliseconds: a person is waiting. */
const CHECK_TIMEOUT_MS = 10_000;

/** Looks at server and table over a connection of its own, which is closed again. Changes nothing; never throws. */
export async function checkStore(settings: ConnectionSettings, openLine?: OpenLine, definition: TableDefinition = CLAIM_TABLE): Promise<StoreCheck> {
	const connection = new Connection({ ...settings, maxConnections: 1, timeoutMs: Math.min(settings.timeoutMs, CHECK_TIMEOUT_MS) }, undefined, openLine);
	try {
		return await inspect(connection, definition);
	} catch (failure) {
		const { message, hint } = asClaimError(failure);
		return { summary: '', problems: [sentence(message, hint)] };
	} finally {
		await connection.close();
	}
}

async function inspect(connection: Connection, definition: TableDefinition): Promise<StoreCheck> {
	const { schema, table, createTable } = connection.settings;
	const name = `"${schema}"."${table}"`;
	const server = await readServer(connection);
	const problems: string[] = [];

	if (server.read_only === 'on') {
		problems.push('The server is read-only (a standby, or default_transaction_read_only is on). Point the credential at the primary server.');
	}
	if (server.synchronous_commit === 'off') {
		problems.push('Commits are not durable: synchronous_commit is off for this user, so a crash of the server can forget a claim. Run ALTER ROLE … SET synchronous_commit = on.');
	}

	const connected = `Connected to PostgreSQL ${server.version}.`;
	const found = await inspectTable(async (text, values) => await connection.send({ text, values, writes: false }), connection.settings, CLAIM_COLUMNS);
	if (found === undefined) {
		problems.push(...missingTable(server, createTable, name, schema));
		return { summary: `${connected} The table ${name} does not exist yet: the first claim creates it.`, problems };
	}
	const trouble = versionTrouble(found, connection.settings, definition);
	for (const { message, hint } of [...(trouble ? [trouble] : []), ...found.unfit, ...found.hazards]) problems.push(sentence(message, hint));
	const upgrade = createTable && isBehind(found, definition) ? ' The next claim upgrades it.' : '';
	return { summary: `${connected} The table ${name} is ready.${upgrade}`, problems };
}

function missingTable(server: Row, createTable: boolean, name: string, schema: string): string[] {
	if (server.schema_exists !== 't') return [`The schema "${schema}" does not exist. Create it, or correct Schema in the credential.`];
	if (!createTable) return [`The table ${name} does not exist, and Create Table is off. Have the DBA run the SQL that the package ships (claim-table.sql), or switch Create Table on.`];
	if (server.may_create !== 't') {
		return [`The table ${name} does not exist, and this user may not create it (PostgreSQL 15 and newer withhold CREATE on the schema public). Run GRANT USAGE, CREATE ON SCHEMA "${schema}" for this user, or have the DBA run the SQL that the package ships (claim-table.sql).`];
	}
	return [];
}

async function readServer(connection: Connection): Promise<Row> {
	const [row] = await connection.send({
		writes: false,
		text: `
			SELECT current_setting('server_version') AS version,
			       current_setting('transaction_read_only') AS read_only,
			       current_setting('synchronous_commit') AS synchronous_commit,
			       n.oid IS NOT NULL AS schema_exists,
			       coalesce(has_schema_privilege(n.oid, 'CREATE') AND has_schema_privilege(n.oid, 'USAGE'), false) AS may_create
			  FROM (SELECT 1) AS one LEFT JOIN pg_namespace n ON n.nspname = $1`,
		values: [connection.settings.schema],
	});
	return row;
}

function sentence(message: string, hint: string | null): string {
	return [message, hint].filter(Boolean).join('. ');
}
