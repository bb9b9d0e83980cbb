/**
 * The pieces that several statements share. Identities and tokens travel as one JSON array, so a statement takes any number of items with one parameter.
 */

/** The columns that find a claim: its primary key. */
export const KEY_COLUMNS = 'delivery_id, source, account, action, environment';

/** The key columns as a column list of json_to_recordset. */
export const KEY_RECORD = 'delivery_id text, source text, account text, action text, environment text';

/** The columns of `ownerOf`, of json_to_recordset. */
export const OWNER_RECORD = 'instance_id text, workflow_id text, execution_id text, node_id text, node_name text';

/** The columns of `ownershipOf`, of json_to_recordset. */
export const OWNERSHIP_RECORD = `state text, attempt integer, operation text, ${OWNER_RECORD}, owner_token text,
	event_type text, fingerprint text, payload text, payload_complete boolean,
	lease_seconds integer, when_lease_expires text, max_attempts integer, retention_days integer`;

/** Joins the table alias `claim` to the recordset alias `item` by the primary key. */
export const SAME_CLAIM =
	'claim.delivery_id = item.delivery_id AND claim.source = item.source AND claim.account = item.account' +
	' AND claim.action = item.action AND claim.environment = item.environment';

/**
 * The items of a statement: a JSON array in this parameter, as the alias `item`. A single one is announced as such: of any JSON the
 * planner supposes a hundred rows, for which it would rather read a small table whole than ask its key.
 */
export function itemsOf(parameter: string, columns: string, several: boolean): string {
	const items = `json_to_recordset(${parameter}::json) AS item(${columns})`;
	return several ? items : `(SELECT * FROM ${items} LIMIT 1) AS item`;
}

/**
 * A condition on a row that its key finds. Hidden from the planner, which may prefer one of the partial indexes by it, and read every
 * unfinished claim for a single one.
 */
export function alsoHolds(condition: string): string {
	return `CASE WHEN ${condition} THEN true ELSE false END`;
}

/**
 * Bounds the wait for another session's lock inside the statement itself: it needs no transaction, works through
 * a pooler, and leaks nothing. The first parameter is the bound in milliseconds; the connection fills it in.
 */
export const BOUNDED_WAIT = `set_config('lock_timeout', $1, true) AS bounded_wait`;

/** Remembers what it builds, by its arguments: the texts of the statements of each claim are long, and made of many pieces. */
export function builtOnce<Parts extends ReadonlyArray<string | boolean>>(build: (...parts: Parts) => string): (...parts: Parts) => string {
	const texts = new Map<string, string>();
	return (...parts) => {
		const key = parts.join('\n');
		let text = texts.get(key);
		if (text === undefined) {
			text = build(...parts);
			texts.set(key, text);
		}
		return text;
	};
}

/** An instant as ISO 8601 text with Z, whatever the session's time zone and date style. */
export function isoInstant(expression: string): string {
	return `to_char(${expression} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}

export interface HistoryEntry {
	state: string;
	version: string;
	attempt: string;
	workflow: string;
	execution: string;
	by: string;
	reason: string;
	reference: string;
}

/** One history entry; each part is an SQL expression. */
export function historyEntry(entry: HistoryEntry): string {
	return `jsonb_build_object('at', ${isoInstant('clock_timestamp()')}, 'state', ${entry.state}::text, 'version', ${entry.version}, 'attempt', ${entry.attempt},
		'workflow', ${entry.workflow}::text, 'execution', ${entry.execution}::text, 'by', ${entry.by}::text, 'reason', ${entry.reason}::text, 'reference', ${entry.reference}::text)`;
}

/** When a row in that state may be forgotten: finished claims and test claims, after their retention. */
export function purgeAfter(state: string, environment: string, retentionDays: string): string {
	return `CASE WHEN ${state} = 'completed' OR ${environment} = 'test' THEN clock_timestamp() + make_interval(days => ${retentionDays}) END`;
}
