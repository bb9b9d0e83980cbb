import { Connection, type Row } from './connection/connection';
import type { ConnectionSettings } from './connection/settings';
import { asClaimError } from './errors';
import { CLAIM_COLUMNS } from './table/claimTable';

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
export async function checkStore(settings: ConnectionSettings): Promise<StoreCheck> {
	const connection = new Connection({ ...settings, maxConnections: 1, timeoutMs: Math.min(settings.timeoutMs, CHECK_TIMEOUT_MS) });
	try {
		return await inspect(connection);
	} catch (failure) {
		const { message, hint } = asClaimError(failure);
		return { summary: '', problems: [sentence(message, hint)] };
	} finally {
		await connection.close();
	}
}

async function inspect(connection: Connection): Promise<StoreCheck> {
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

	const found = await readTable(connection);
	if (found === undefined) {
		problems.push(...missingTable(server, createTable, name, schema));
		return { summary: `Connected to PostgreSQL ${server.version}. The table ${name} does not exist yet: the first claim creates it.`, problems };
	}
	if (found.missing_columns !== null && found.missing_columns !== '') {
		problems.push(`The table ${name} is not a claim table of this version: it lacks ${found.missing_columns}. Choose another table name, or have the DBA run the SQL that the package ships (claim-table.sql).`);
	} else if (found.has_key !== 't') {
		problems.push(`The table ${name} lacks its key: without PRIMARY KEY (delivery_id, source, account, action, environment) every copy of a delivery would be new.`);
	}
	if (found.other_unique !== null && found.other_unique !== '') {
		problems.push(`The table ${name} has another unique index (${found.other_unique}), which would refuse claims. Drop it.`);
	}
	if (found.unlogged === 't') {
		problems.push(`The table ${name} is UNLOGGED: a crash of the server empties it. Run ALTER TABLE ${name} SET LOGGED.`);
	}
	if (found.allowed !== 't') {
		problems.push(`The user "${connection.settings.user}" may not use the table ${name}. Grant SELECT, INSERT and UPDATE on it, and USAGE on its schema.`);
	}
	return { summary: `Connected to PostgreSQL ${server.version}. The table ${name} is ready.`, problems };
}

function missingTable(server: Row, createTable: boolean, name: string, schema: string): string[] {
	if (server.schema_exists !== 't') return [`The schema "${schema}" does not exist. Create it, or correct Schema in the credential.`];
	if (!createTable) return [`The table ${name} does not exist, and Create Table is off. Have the DBA run the SQL that the package ships (claim-table.sql), or switch Create Table on.`];
	if (server.may_create !== 't') {
		return [`The table ${name} does not exist, and this user may not create it (PostgreSQL 15 and newer withhold CREATE on the schema public). Run GRANT CREATE ON SCHEMA "${schema}" for this user, or have the DBA run the SQL that the package ships (claim-table.sql).`];
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
			       coalesce(has_schema_privilege(n.oid, 'CREATE'), false) AS may_create
			  FROM (SELECT 1) AS one LEFT JOIN pg_namespace n ON n.nspname = $1`,
		values: [connection.settings.schema],
	});
	return row;
}

/** The key's columns in alphabetical order: in an index any order will do. */
const KEY_ARRAY = `ARRAY['account', 'action', 'delivery_id', 'environment', 'source']`;

async function readTable(connection: Connection): Promise<Row | undefined> {
	const [row] = await connection.send({
		writes: false,
		text: `
			WITH target AS (
				SELECT c.oid, n.oid AS schema_oid, c.relpersistence
				  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
				 WHERE n.nspname = $1 AND c.relname = $2),
			unique_index AS (
				SELECT i.indexrelid::regclass::text AS name,
				       i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AS whole,
				       (SELECT array_agg(a.attname::text ORDER BY a.attname) FROM pg_attribute a
				         WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)) AS columns
				  FROM pg_index i JOIN target ON target.oid = i.indrelid
				 WHERE i.indisunique)
			SELECT target.relpersistence = 'u' AS unlogged,
			       has_table_privilege(target.oid, 'SELECT') AND has_table_privilege(target.oid, 'INSERT')
			         AND has_table_privilege(target.oid, 'UPDATE') AND has_schema_privilege(target.schema_oid, 'USAGE') AS allowed,
			       (SELECT string_agg(needed, ', ') FROM unnest($3::text[]) AS needed
			         WHERE NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = target.oid AND a.attname = needed AND NOT a.attisdropped)) AS missing_columns,
			       EXISTS (SELECT FROM unique_index WHERE columns = ${KEY_ARRAY} AND whole) AS has_key,
			       (SELECT string_agg(name, ', ') FROM unique_index WHERE columns IS DISTINCT FROM ${KEY_ARRAY}) AS other_unique
			  FROM target`,
		values: [connection.settings.schema, connection.settings.table, CLAIM_COLUMNS],
	});
	return row;
}

function sentence(message: string, hint: string | null): string {
	return [message, hint].filter(Boolean).join('. ');
}
