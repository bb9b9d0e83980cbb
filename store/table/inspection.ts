import type { Row } from '../connection/connection';
import type { ConnectionSettings } from '../connection/settings';

/** A column as the shipped SQL defines it. */
export interface ColumnDefinition {
	readonly name: string;
	/** As `format_type` writes it. */
	readonly type: string;
	readonly nullable: boolean;
}

/** What is wrong with a table, and what to do. */
export interface TableProblem {
	readonly message: string;
	readonly hint: string;
}

/** What the catalogs say of the claim table. */
export interface TableInspection {
	readonly comment: string | null;
	/** Who owns it, and whether this user may alter it. */
	readonly owner: string;
	readonly mayAlter: boolean;
	/** Claims in it could be wrong: nothing is claimed there. */
	readonly unfit: readonly TableProblem[];
	/** Claims in it are refused, or may be forgotten: the credential test warns, a claim finds out by itself. */
	readonly hazards: readonly TableProblem[];
}

/** The columns of a CREATE TABLE as in `claim-table.sql`: one a line. */
export function columnsOf(createSql: string): ColumnDefinition[] {
	return [...createSql.matchAll(/^\t([a-z_]+) +(text|integer|timestamptz|json|jsonb|boolean)\b(.*)$/gm)].map(([, name, type, rest]) => ({
		name,
		type: type === 'timestamptz' ? 'timestamp with time zone' : type,
		nullable: !rest.includes('NOT NULL'),
	}));
}

/**
 * Reads in one statement whether the table is what the package needs it to be. The database promises one claim per
 * delivery only if the key is unique, whole, and compared byte for byte; a table made or changed by hand may lack that.
 *
 * @returns undefined when there is no such table
 */
export async function inspectTable(send: (text: string, values: unknown[]) => Promise<Row[]>, settings: ConnectionSettings, columns: readonly ColumnDefinition[]): Promise<TableInspection | undefined> {
	const { schema, table, user } = settings;
	const [row] = await send(INSPECTION, [schema, table, JSON.stringify(columns.map((column, position) => ({ ...column, position })))]);
	if (row === undefined) return undefined;
	const name = `"${schema}"."${table}"`;
	return {
		comment: row.comment,
		owner: row.owner ?? '',
		mayAlter: row.may_alter === 't',
		unfit: unfitness(row, name),
		hazards: hazards(row, name, user),
	};
}

const NEEDED_KEY = 'PRIMARY KEY (delivery_id, source, account, action, environment)';

function unfitness(row: Row, name: string): TableProblem[] {
	if (row.kind !== 'r' && row.kind !== 'p') {
		return [{ message: `${name} is ${KINDS[row.kind ?? ''] ?? 'not a table'}`, hint: 'Claims need a table of their own in this database, whose key can be seen: name it in the credential.' }];
	}
	const problems: TableProblem[] = [];
	const found = (what: string | null, message: string, hint: string) => {
		if (what !== null) problems.push({ message, hint });
	};
	found(row.missing, `The table ${name} lacks columns of this version: ${row.missing}`, 'Choose another table name, or have the DBA make the table with the SQL that the package ships (claim-table.sql).');
	found(row.mistyped, `The table ${name} has columns of another type: ${row.mistyped}`, 'A value could be cut, folded or moved in time. Change them with ALTER TABLE … ALTER COLUMN … TYPE, or make the table anew with the SQL that the package ships (claim-table.sql).');
	found(row.folding, `The table ${name} has columns whose collation takes different texts for equal: ${row.folding}`, 'Two deliveries could be taken for one. Run ALTER TABLE … ALTER COLUMN … TYPE text COLLATE "C" for each.');
	// A key over columns that are missing or of another type is no news.
	if (problems.length === 0 && row.has_key !== 't') {
		problems.push({ message: `The table ${name} lacks its primary key`, hint: `It needs ${NEEDED_KEY}, not partial, deferrable or invalid; without it every copy of a delivery would be new.` });
	}
	found(row.rules, `The table ${name} has rules for INSERT or UPDATE: ${row.rules}`, 'A rule replaces what a claim writes. Drop it.');
	return problems;
}

const KINDS: Readonly<Record<string, string>> = { v: 'a view', m: 'a materialized view', f: 'a foreign table', S: 'a sequence', i: 'an index', I: 'an index', c: 'a type' };

function hazards(row: Row, name: string, user: string): TableProblem[] {
	const problems: TableProblem[] = [];
	const found = (what: string | null, message: string, hint: string) => {
		if (what !== null) problems.push({ message, hint });
	};
	found(row.other_unique, `The table ${name} has another unique index or constraint, which would refuse claims: ${row.other_unique}`, 'Drop it.');
	found(row.constraints, `The table ${name} has a constraint of its own, which would refuse the claims that it does not allow: ${row.constraints}`, 'Drop it.');
	found(row.demanded, `The table ${name} demands a value in columns that a claim may leave empty: ${row.demanded}`, 'Run ALTER TABLE … ALTER COLUMN … DROP NOT NULL for each, or give a column that is not the package\'s own a default.');
	found(row.triggers, `The table ${name} has triggers that run before each row and may drop, change or refuse claims: ${row.triggers}`, 'Drop them; a trigger that only takes note can run AFTER INSERT OR UPDATE.');
	found(row.row_security, `Row-level security of the table ${name} applies to the user "${user}" and may hide or refuse rows`, 'Add a policy FOR ALL USING (true) for this user, or disable row-level security on this table.');
	found(row.unlogged, `UNLOGGED, which a crash of the server empties: ${row.unlogged}`, 'Run ALTER TABLE … SET LOGGED.');
	found(row.lacking, `The user "${user}" may not use the table ${name}: it lacks ${row.lacking}`, 'Grant SELECT, INSERT and UPDATE on the table, and USAGE on its schema.');
	return problems;
}

/** The key's columns in alphabetical order: in an index any order will do. */
const KEY_ARRAY = `ARRAY['account', 'action', 'delivery_id', 'environment', 'source']`;
/** Those with a CHECK in the shipped SQL. */
const CHECKED_COLUMNS = `'environment', 'state', 'operation', 'when_lease_expires'`;

/** $1 schema, $2 table, $3 the columns as JSON. Every list is null when it is empty. */
const INSPECTION = `
	WITH target AS (
		SELECT c.oid, c.relkind, c.relowner, n.oid AS schema_oid
		  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		 WHERE n.nspname = $1 AND c.relname = $2),
	needed AS (
		SELECT needed.*, a.attnum, a.attnotnull, a.attcollation,
		       format_type(a.atttypid, a.atttypmod) AS present_type
		  FROM target CROSS JOIN json_to_recordset($3::json) AS needed(name text, type text, nullable boolean, position integer)
		  LEFT JOIN pg_attribute a ON a.attrelid = target.oid AND a.attname = needed.name AND NOT a.attisdropped),
	unique_index AS (
		SELECT i.indexrelid::regclass::text AS name,
		       -- What ON CONFLICT (the five columns) takes for its judge, and what compares byte for byte.
		       i.indisunique AND i.indisvalid AND i.indimmediate AND NOT i.indisexclusion AND i.indpred IS NULL AND i.indnkeyatts = 5
		         AND (SELECT array_agg(a.attname::text ORDER BY a.attname COLLATE "C") FROM pg_attribute a
		               WHERE a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])) = ${KEY_ARRAY}
		         AND NOT EXISTS (SELECT FROM pg_collation l WHERE l.oid = ANY (i.indcollation::oid[]) AND NOT l.collisdeterministic) AS is_key
		  FROM pg_index i JOIN target ON target.oid = i.indrelid
		 WHERE (i.indisunique OR i.indisexclusion) AND i.indisready)
	SELECT obj_description(target.oid, 'pg_class') AS comment,
	       target.relkind AS kind,
	       pg_get_userbyid(target.relowner) AS owner,
	       pg_has_role(target.relowner, 'USAGE') AS may_alter,
	       (SELECT string_agg(name, ', ' ORDER BY position) FROM needed WHERE attnum IS NULL) AS missing,
	       (SELECT string_agg(format('%s is %s instead of %s', name, present_type, type), ', ' ORDER BY position) FROM needed WHERE present_type <> type) AS mistyped,
	       (SELECT string_agg(name, ', ' ORDER BY position) FROM needed JOIN pg_collation l ON l.oid = attcollation WHERE NOT l.collisdeterministic) AS folding,
	       EXISTS (SELECT FROM unique_index WHERE is_key) AS has_key,
	       (SELECT string_agg(rulename::text, ', ' ORDER BY rulename) FROM pg_rewrite WHERE ev_class = target.oid AND ev_type IN ('2', '3') AND ev_enabled <> 'D') AS rules,
	       (SELECT string_agg(name, ', ' ORDER BY name) FROM unique_index WHERE NOT is_key) AS other_unique,
	       (SELECT string_agg(c.conname::text, ', ' ORDER BY c.conname) FROM pg_constraint c
	         WHERE c.conrelid = target.oid
	           AND (c.contype = 'f' OR (c.contype = 'c'
	             AND c.conkey <@ (SELECT array_agg(attnum) FROM needed)
	             AND c.conkey <> ALL (SELECT ARRAY[attnum] FROM needed WHERE name IN (${CHECKED_COLUMNS}))))) AS constraints,
	       (SELECT string_agg(a.attname::text, ', ' ORDER BY a.attnum) FROM pg_attribute a LEFT JOIN needed ON needed.attnum = a.attnum
	         WHERE a.attrelid = target.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull
	           AND CASE WHEN needed.name IS NULL THEN NOT a.atthasdef AND a.attidentity = '' ELSE needed.nullable END) AS demanded,
	       (SELECT string_agg(tgname::text, ', ' ORDER BY tgname) FROM pg_trigger
	         WHERE tgrelid = target.oid AND NOT tgisinternal AND tgenabled IN ('O', 'A') AND tgtype & 3 = 3 AND tgtype & 20 <> 0) AS triggers,
	       CASE WHEN row_security_active(target.oid) AND (
	             EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = target.oid AND NOT p.polpermissive)
	             OR NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = target.oid AND p.polpermissive AND p.polcmd = '*'
	                              AND EXISTS (SELECT FROM unnest(p.polroles) AS role WHERE CASE WHEN role = 0 THEN true ELSE pg_has_role(role, 'USAGE') END)
	                              AND pg_get_expr(p.polqual, p.polrelid) = 'true' AND coalesce(pg_get_expr(p.polwithcheck, p.polrelid), 'true') = 'true'))
	            THEN 'active' END AS row_security,
	       (SELECT string_agg(c.oid::regclass::text, ', ' ORDER BY c.oid::regclass::text) FROM pg_class c
	         WHERE c.relpersistence = 'u' AND (c.oid = target.oid OR c.oid IN (SELECT relid FROM pg_partition_tree(target.oid)))) AS unlogged,
	       nullif(concat_ws(', ',
	         CASE WHEN NOT has_table_privilege(target.oid, 'SELECT') THEN 'SELECT' END,
	         CASE WHEN NOT has_table_privilege(target.oid, 'INSERT') THEN 'INSERT' END,
	         CASE WHEN NOT has_table_privilege(target.oid, 'UPDATE') THEN 'UPDATE' END,
	         CASE WHEN NOT has_schema_privilege(target.schema_oid, 'USAGE') THEN 'USAGE on the schema' END), '') AS lacking
	  FROM target`;
