import { createHash, randomInt, randomUUID } from 'node:crypto';
import { openClaimStore, type ClaimStore } from '../store/claimStore';
import type { OutcomeKind } from '../store/decisions';
import type { Identity } from '../store/identity';
import { CLAIM_COLUMNS } from '../store/table/claimTable';
import { anIdentity, anOutcome, aRequest, ownershipOf, settingsFor } from '../test/store/support/claims';
import type { TestDatabase } from '../test/support/database';
import { anExecution } from './ours';
import { anOrder } from './payload';

/** How many of a thousand claims are what, in a store that has been in use for months. */
const STATES = [
	{ name: 'completed', perThousand: 985, outcome: 'completed' },
	{ name: 'retry', perThousand: 5, outcome: 'retryableFailure' },
	{ name: 'uncertain', perThousand: 4, outcome: 'outcomeUncertain' },
	{ name: 'open', perThousand: 4, outcome: undefined },
	{ name: 'review', perThousand: 2, outcome: 'needsReview' },
] as const satisfies ReadonlyArray<{ name: string; perThousand: number; outcome: OutcomeKind | undefined }>;

/** The claims are spread over this many days, so that a retention of 30 days is over for three quarters of them. */
const DAYS = 120;
const RETENTION_DAYS = 30;

/** The identity of a row that `fillTable` made, by its number; the ID is a UUID, as senders use it, without any order. */
export function filledIdentity(row: number): Identity {
	const hex = createHash('md5').update(String(row)).digest('hex');
	return anIdentity({ deliveryId: [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-') });
}

/** The number of a completed claim within its retention, which no purge takes. */
export function rowThatStays(rows: number): number {
	const row = randomInt(Math.ceil((rows * (DAYS - RETENTION_DAYS)) / DAYS) + 1, rows + 1);
	return row % 1000 < STATES[0].perThousand ? row : rowThatStays(rows);
}

/**
 * Makes a claim table and fills it with so many rows, numbered from 1, oldest first. They are copies of claims that
 * the store made, with IDs and instants of their own; what is due for recovery is a part of the unfinished ones.
 * Autovacuum is switched off for the table, so that it disturbs no round and dead rows stay.
 */
export async function fillTable(database: TestDatabase, table: string, rows: number): Promise<void> {
	const store = openClaimStore(settingsFor(database, { table }));
	await makePatterns(store, database, table);
	await store.close();
	await database.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false, toast.autovacuum_enabled = false)`);
	// Rebuilding the indexes at the end is many times faster than keeping them up.
	const rebuild = await dropIndexes(database, table);
	await addRows(database, table, 1, rows);
	for (const statement of rebuild) await database.query(statement);
	await database.query(`VACUUM (ANALYZE) ${table}`);
}

/** One claim of each kind, made by the store itself and put aside. */
async function makePatterns(store: ClaimStore, database: TestDatabase, table: string): Promise<void> {
	for (const { name, outcome } of STATES) {
		const owner = anExecution();
		const request = aRequest({ identity: anIdentity({ deliveryId: name }), payload: { json: anOrder(), complete: true } });
		const [answer] = await store.claim('claim', owner, [request]);
		if (outcome) await store.settle(outcome, owner, [anOutcome(ownershipOf(answer), { reference: randomUUID(), reason: outcome === 'completed' ? null : 'The destination answered 503' })]);
	}
	await database.query(`CREATE TABLE ${patternsOf(table)} AS SELECT * FROM ${table}`);
	await database.query(`DELETE FROM ${table}`);
}

function patternsOf(table: string): string {
	return `${table}_patterns`;
}

/** What a copy has of its own; everything else is the pattern's. */
const OWN_VALUES: Readonly<Record<string, string>> = {
	delivery_id: 'md5(place.number::text)::uuid::text',
	// As many characters as a token of the node has.
	owner_token: `left(md5('token ' || place.number) || md5('more ' || place.number), 43)`,
	owner_execution_id: 'place.number::text',
	first_seen_at: 'place.seen',
	updated_at: 'place.seen',
	// Of four leases one is over, and of four retries three are due.
	lease_expires_at: `CASE WHEN pattern.lease_expires_at IS NOT NULL THEN now() + CASE WHEN place.number % 4 = 0 THEN interval '-1 hour' ELSE interval '1 day' END END`,
	retry_at: `CASE WHEN pattern.retry_at IS NOT NULL THEN now() + CASE WHEN place.number % 4 = 0 AND $3::text IS NULL THEN interval '1 day' ELSE interval '-1 hour' END END`,
	outcome_recorded_at: `CASE WHEN pattern.outcome_recorded_at IS NOT NULL THEN place.seen END`,
	purge_after: `CASE WHEN pattern.purge_after IS NOT NULL THEN place.seen + interval '${RETENTION_DAYS} days' END`,
};

/** @param only all of them in this state, else in their usual proportions */
async function addRows(database: TestDatabase, table: string, from: number, to: number, only?: (typeof STATES)[number]['name']): Promise<void> {
	const names = CLAIM_COLUMNS.map(({ name }) => name);
	let below = 0;
	const whens = STATES.map(({ name, perThousand }) => `WHEN place.number % 1000 < ${(below += perThousand)} THEN '${name}'`);
	await database.query(
		`INSERT INTO ${table} (${names.join(', ')})
		 SELECT ${names.map((name) => OWN_VALUES[name] ?? `pattern.${name}`).join(', ')}
		   FROM (SELECT number, now() - interval '${DAYS} days' * (1 - number / $2::float8) AS seen FROM generate_series($1::bigint, $2::bigint) AS number) AS place
		   JOIN ${patternsOf(table)} AS pattern ON pattern.delivery_id = coalesce($3, CASE ${whens.join(' ')} END)`,
		[from, to, only ?? null],
	);
}

/** Adds claims that are due for another attempt, behind all others. */
export async function addDueRows(database: TestDatabase, table: string, from: number, count: number): Promise<void> {
	await addRows(database, table, from, from + count - 1, 'retry');
}

/** @returns the statements that make them anew: the key as full as keys that came in no order leave it, about 70 % */
async function dropIndexes(database: TestDatabase, table: string): Promise<string[]> {
	const indexes = await database.query<{ name: string; definition: string; constraint: string | null }>(
		`SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition, pg_get_constraintdef(c.oid) AS constraint
		   FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid WHERE i.indrelid = $1::regclass ORDER BY i.indexrelid`,
		[table],
	);
	for (const { name, constraint } of indexes) await database.query(constraint === null ? `DROP INDEX ${name}` : `ALTER TABLE ${table} DROP CONSTRAINT ${name}`);
	return [
		`SET maintenance_work_mem = '512MB'`,
		...indexes.map(({ name, definition, constraint }) => (constraint === null ? definition : `ALTER TABLE ${table} ADD CONSTRAINT ${name} ${constraint} WITH (fillfactor = 70)`)),
		'RESET maintenance_work_mem',
	];
}

/** What a table takes on disk, in bytes. */
export interface TableSize {
	readonly rows: number;
	/** With what is stored beside it (TOAST). */
	readonly table: number;
	/** By the columns that it is over. */
	readonly indexes: ReadonlyMap<string, number>;
}

export async function sizeOf(database: TestDatabase, table: string): Promise<TableSize> {
	const [{ rows, bytes }] = await database.query<{ rows: string; bytes: string }>(`SELECT (SELECT count(*) FROM ${table}) AS rows, pg_table_size($1::regclass) AS bytes`, [table]);
	const indexes = await database.query<{ columns: string; bytes: string }>(
		`SELECT (SELECT string_agg(a.attname, ', ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = i.indexrelid) AS columns, pg_relation_size(i.indexrelid) AS bytes
		   FROM pg_index i WHERE i.indrelid = $1::regclass ORDER BY i.indexrelid`,
		[table],
	);
	return { rows: Number(rows), table: Number(bytes), indexes: new Map(indexes.map(({ columns, bytes }) => [columns, Number(bytes)])) };
}
