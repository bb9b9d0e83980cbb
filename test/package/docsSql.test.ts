import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { openClaimStore, type ClaimStore } from '../../store/claimStore';
import type { OutcomeKind } from '../../store/decisions';
import { CLAIM_TABLE } from '../../store/table/claimTable';
import { aCopyOf, anIdentity, anOutcome, anOwner, aRequest, changeRow, ownershipOf, settingsFor } from '../store/support/claims';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { LEASE_OVER } from '../support/timePassed';

/**
 * Every SQL statement of the documents, each under its comment `<!-- sql: name -->`, run on a table that the package
 * made: what operators paste at night gives what the page says, and what is said to look changes nothing.
 */

const ROOT = path.join(__dirname, '../..');
const pages = ['README.md', ...readdirSync(path.join(ROOT, 'docs')).filter((name) => name.endsWith('.md')).map((name) => path.join('docs', name))];
const blocks = pages.flatMap((page) =>
	[...readFileSync(path.join(ROOT, page), 'utf8').matchAll(/(?:<!-- sql: (.+) -->\n)?```sql\n([\s\S]*?)```/g)].map(([, name, sql]) => ({ name: name ?? `without a name, in ${page}`, sql })),
);
const sqlOf = (name: string) => blocks.find((block) => block.name === name)?.sql ?? '';

let database: TestDatabase;
let store: ClaimStore;

beforeAll(async () => {
	database = await createTestDatabase();
	store = openClaimStore(settingsFor(database));
	await makeClaims();
});
afterAll(async () => {
	await store?.close();
	await database?.drop();
});

const HOURS_AGO = (hours: number) => `now() - interval '${hours} hours'`;

/** One claim, made and left by the package, then moved in time. */
async function make(deliveryId: string, operation: 'claim' | 'receive', outcome: OutcomeKind | null, changes?: string, identity: { environment?: 'live' | 'test' } = {}, withPayload = true): Promise<void> {
	const request = aRequest({ identity: anIdentity({ deliveryId, ...identity }), payload: withPayload ? { json: '{}', complete: true } : { json: null, complete: false } });
	const [answer] = await store.claim(operation, anOwner(), [request]);
	if (outcome) await store.settle(outcome, anOwner(), [anOutcome(ownershipOf(answer), { reference: outcome === 'completed' ? `lead of ${deliveryId}` : null, reason: 'because' })]);
	if (changes) await changeRow(database, request.identity, changes);
}

async function makeClaims(): Promise<void> {
	await make('working', 'claim', null);
	await make('left behind', 'claim', null, `${LEASE_OVER}, first_seen_at = ${HOURS_AGO(7)}`);
	await make('uncertain', 'claim', 'outcomeUncertain', `first_seen_at = ${HOURS_AGO(6)}`);
	await make('for a person', 'claim', 'needsReview', `first_seen_at = ${HOURS_AGO(5)}`);
	await make('just stored', 'receive', null);
	await make('never begun', 'receive', null, `first_seen_at = ${HOURS_AGO(4)}`);
	await make('retried soon', 'claim', 'retryableFailure');
	await make('not retried', 'claim', 'retryableFailure', `retry_at = ${HOURS_AGO(2)}, first_seen_at = ${HOURS_AGO(3)}`);
	await make('not kept', 'claim', null, undefined, {}, false);
	await make('done', 'claim', 'completed');
	await make('done long ago', 'claim', 'completed', `purge_after = ${HOURS_AGO(1)}`);
	await make('tried', 'claim', 'needsReview', undefined, { environment: 'test' });
	await make('tried long ago', 'claim', null, `${LEASE_OVER}, purge_after = ${HOURS_AGO(1)}`, { environment: 'test' });
	await makeDoneTwice();
}

/** A run that was replaced, and had acted all the same; and one that says again what is on record. */
async function makeDoneTwice(): Promise<void> {
	const first = aRequest({ identity: anIdentity({ deliveryId: 'evt_1' }), whenLeaseExpires: 'takeOver' });
	const late = anOutcome(ownershipOf((await store.claim('claim', anOwner(), [first]))[0]), { reference: 'lead-1' });
	await changeRow(database, first.identity, LEASE_OVER);
	const next = anOutcome(ownershipOf((await store.claim('claim', anOwner(), [aCopyOf(first)]))[0]), { reference: 'lead-2' });
	await store.settle('completed', anOwner(), [next]);
	await store.settle('completed', anOwner({ executionId: '41' }), [late]);
	await store.settle('completed', anOwner(), [{ ...late, reference: 'lead-2' }]);
}

type Rows = Array<Record<string, unknown>>;
const column = (name: string) => (rows: Rows) => rows.map((row) => row[name]);

/** What only looks, and what it must show of the claims above. */
const LOOKS: Record<string, { show: (rows: Rows) => unknown; expected: unknown }> = {
	stuck: { show: column('delivery_id'), expected: ['left behind', 'uncertain', 'for a person', 'never begun', 'not retried'] },
	counts: {
		show: (rows) => rows.map(({ environment, state, claims }) => `${String(environment)} ${String(state)} ${String(claims)}`),
		expected: ['live completed 3', 'live needs_review 1', 'live outcome_uncertain 1', 'live processing 3', 'live received 2', 'live retryable_failure 2', 'test needs_review 1', 'test processing 1'],
	},
	history: {
		show: (rows) => rows.map(({ state, version, attempt, reason, reference }) => [state, version, attempt, reason, reference]),
		expected: [
			['processing', '1', '1', 'first_delivery', null],
			['processing', '2', '2', 'lease_expired', null],
			['completed', '2', '2', null, 'lead-2'],
			['completed', '1', '2', 'stale_claim', 'lead-1'],
			['completed', '1', '2', 'stale_claim', 'lead-2'],
		],
	},
	'without payload': { show: column('delivery_id'), expected: ['not kept'] },
	twice: { show: (rows) => rows.map((row) => [row.delivery_id, row.outcome_reference, row.also_created, row.by_execution]), expected: [['evt_1', 'lead-2', 'lead-1', '41']] },
	connections: { show: (rows) => rows.length > 0 && rows.every(({ connections }) => Number(connections) > 0), expected: true },
	purgeable: { show: (rows) => rows.map(({ claims, purgeable, size }) => [claims, purgeable, /^\d+ kB$/.test(String(size))]), expected: [['14', '2', true]] },
};
const CHANGES = ['purge by hand', 'rights'];

test('every statement of the documents is tried here, and has a name that no other has', () => {
	expect(blocks.map(({ name }) => name).sort()).toEqual([...Object.keys(LOOKS), ...CHANGES].sort());
});

/** In a transaction that is rolled back, so that no test meets what another has done. */
async function tried<Result>(begin: string, work: () => Promise<Result>): Promise<Result> {
	await database.query(begin);
	try {
		return await work();
	} finally {
		await database.query('ROLLBACK');
	}
}

test.each(Object.entries(LOOKS))('%s: shows what it should, and only reads', async (name, { show, expected }) => {
	const rows = await tried('BEGIN READ ONLY', async () => await database.query(sqlOf(name)));
	expect(show(rows)).toEqual(expected);
});

const left = async () => (await database.query<{ delivery_id: string }>('SELECT delivery_id FROM idempotent_claims ORDER BY delivery_id')).map(({ delivery_id }) => delivery_id);

test('rights: what the page grants is what the table needs', async () => {
	const role = 'n8n_claims';
	await tried('BEGIN', async () => {
		await database.query(`CREATE ROLE ${role}`);
		await database.query(sqlOf('rights'));
		const [granted] = await database.query(`
			SELECT has_schema_privilege('${role}', 'public', 'USAGE') AS usage,
			       (SELECT array_agg(privilege_type::text ORDER BY privilege_type) FROM information_schema.role_table_grants WHERE grantee = '${role}') AS rights`);
		expect(granted).toEqual({ usage: true, rights: ['DELETE', 'INSERT', 'SELECT', 'UPDATE'] });
	});
	expect(CLAIM_TABLE.createSql).toContain('USAGE on the schema; SELECT, INSERT, UPDATE on the table; DELETE only for purging');
});

test('purge by hand: removes what the node removes, and nothing else', async () => {
	const byHand = await tried('BEGIN', async () => {
		await database.query(sqlOf('purge by hand'));
		return await left();
	});
	const { live, test: tests } = await store.purge({ what: 'pastRetention', limit: 100 }, false);
	expect([live, tests]).toEqual([1, 1]);
	expect(byHand).toEqual(await left());
	expect(byHand).not.toContain('done long ago');
});
