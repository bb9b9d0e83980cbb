import { Client } from 'pg';
import { openClaimStore, type ClaimStore } from '../../store/claimStore';
import type { Operation } from '../../store/record';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { LEASE_OVER } from '../support/timePassed';
import { anOutcome, anOwner, aRequest, changeRow, inShort, ownershipOf, rowOf, settingsFor } from './support/claims';

/** Executions that claim at the same moment share statements, and nothing else. */

const EXECUTIONS = 300;

let database: TestDatabase;
let store: ClaimStore;

beforeAll(async () => {
	database = await createTestDatabase();
	store = openClaimStore(settingsFor(database, { timeoutMs: 5000 }));
	await store.claim('claim', anOwner(), [aRequest()]);
	await database.query('CREATE TABLE statements (kind text)');
	await database.query(`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO statements VALUES (TG_OP); RETURN NULL; END $$`);
	await database.query('CREATE TRIGGER note AFTER INSERT OR UPDATE ON idempotent_claims FOR EACH STATEMENT EXECUTE FUNCTION note()');
});
afterAll(async () => {
	await store.close();
	await database.drop();
});

const several = <T>(make: (index: number) => T) => Array.from({ length: EXECUTIONS }, (_, index) => make(index));

async function statements(kind: string): Promise<number> {
	const [{ count }] = await database.query<{ count: number }>(`SELECT count(*)::int AS count FROM statements WHERE kind = '${kind}'`);
	return count;
}

test('claims and outcomes of many executions: few statements, each row with its own owner and operation', async () => {
	const operations: Operation[] = ['claim', 'receive', 'deduplicate'];
	const calls = several((index) => ({ operation: operations[index % 3], owner: anOwner({ executionId: `run-${index}`, nodeName: `Claim ${index}` }), request: aRequest({ maxAttempts: 1 + (index % 7) }) }));
	const before = await statements('INSERT');
	const answers = await Promise.all(calls.map(async ({ operation, owner, request }) => await store.claim(operation, owner, [request])));
	expect((await statements('INSERT')) - before).toBeLessThan(EXECUTIONS / 10);

	const states = { claim: 'processing', receive: 'received', deduplicate: 'completed' } as const;
	for (const [index, { operation, owner, request }] of calls.entries()) {
		expect(inShort(answers[index][0])).toBe('new first_delivery');
		expect(await rowOf(database, request.identity)).toMatchObject({
			state: states[operation],
			operation,
			attempt: operation === 'receive' ? 0 : 1,
			owner_token: request.ownerToken,
			owner_execution_id: owner.executionId,
			owner_node_name: owner.nodeName,
			max_attempts: request.maxAttempts,
			history: [expect.objectContaining({ execution: owner.executionId, by: owner.nodeName, state: states[operation] })],
		});
	}

	const updates = await statements('UPDATE');
	const claimed = calls.flatMap(({ operation, owner }, index) => (operation === 'claim' ? { owner, claim: ownershipOf(answers[index][0]), reference: `lead-${index}` } : []));
	const outcomes = await Promise.all(claimed.map(async ({ owner, claim, reference }) => await store.settle('completed', owner, [anOutcome(claim, { reference })])));
	expect((await statements('UPDATE')) - updates).toBeLessThan(EXECUTIONS / 10);
	for (const [index, { owner, claim, reference }] of claimed.entries()) {
		expect(outcomes[index]).toMatchObject([{ verdict: 'recorded', record: { outcome: { reference } } }]);
		expect((await rowOf(database, claim.identity)).history).toEqual([expect.anything(), expect.objectContaining({ execution: owner.executionId, reference })]);
	}
});

test('takeovers of many executions at once: each has what it took', async () => {
	const requests = several(() => aRequest({ whenLeaseExpires: 'takeOver' }));
	await store.claim('claim', anOwner(), requests);
	for (const { identity } of requests) await changeRow(database, identity, LEASE_OVER);
	const calls = requests.map(({ identity }, index) => ({ owner: anOwner({ executionId: `taker-${index}` }), request: aRequest({ identity }) }));
	const answers = await Promise.all(calls.map(async ({ owner, request }) => await store.claim('claim', owner, [request])));
	for (const [index, { owner, request }] of calls.entries()) {
		expect(inShort(answers[index][0])).toBe('new lease_expired');
		expect(await rowOf(database, request.identity)).toMatchObject({ version: 2, attempt: 2, owner_token: request.ownerToken, owner_execution_id: owner.executionId });
	}
});

test('copies of one delivery from many executions: one is new', async () => {
	const { identity } = aRequest();
	const answers = (await Promise.all(several(async () => await store.claim('claim', anOwner(), [aRequest({ identity })])))).flat().map(inShort);
	expect(answers.filter((answer) => answer === 'new first_delivery')).toHaveLength(1);
	expect(answers.filter((answer) => answer === 'duplicate in_progress')).toHaveLength(EXECUTIONS - 1);
});

test('one that the database refuses, and one whose key is held, are the only ones to hear of it', async () => {
	const requests = several(() => aRequest());
	const [, refused, held] = requests;
	await database.query(`ALTER TABLE idempotent_claims ADD CONSTRAINT not_this_one CHECK (delivery_id <> '${refused.identity.deliveryId}')`);
	const holder = new Client({ ...database });
	await holder.connect();
	await holder.query('BEGIN');
	await holder.query(
		`INSERT INTO idempotent_claims
			SELECT (jsonb_populate_record(claim, jsonb_build_object('delivery_id', $1::text, 'source', $2::text, 'account', $3::text, 'action', $4::text, 'environment', $5::text))).*
			  FROM idempotent_claims AS claim LIMIT 1`,
		[held.identity.deliveryId, held.identity.source, held.identity.account, held.identity.action, held.identity.environment],
	);
	const answers = (await Promise.all(requests.map(async (request) => await store.claim('claim', anOwner(), [request])))).flat();
	await holder.query('ROLLBACK');
	await holder.end();

	expect(answers[1]).toMatchObject({ verdict: 'error', error: { sqlState: '23514' } });
	expect(answers[2]).toMatchObject({ verdict: 'error', error: { kind: 'store_busy', sqlState: '55P03' } });
	expect(answers.map(inShort).filter((answer) => answer === 'new first_delivery')).toHaveLength(EXECUTIONS - 2);
});

test('nobody waits for those that wait: while calls hang on a held key, others are answered', async () => {
	const request = aRequest();
	await store.claim('claim', anOwner(), [request]);
	const holder = new Client({ ...database });
	await holder.connect();
	await holder.query('BEGIN');
	await holder.query('UPDATE idempotent_claims SET updated_at = updated_at WHERE delivery_id = $1', [request.identity.deliveryId]);
	const claim = { identity: request.identity, ownerToken: request.ownerToken, version: 1 };
	let settled = 0;
	const outcomes = Array.from({ length: 4 }, async () => {
		await store.settle('extendLease', anOwner(), [anOutcome(claim)]);
		settled++;
	});
	const other = ownershipOf((await store.claim('claim', anOwner(), [aRequest()]))[0]);
	expect(await store.settle('extendLease', anOwner(), [anOutcome(other)])).toMatchObject([{ verdict: 'recorded' }]);
	expect(settled).toBe(0);
	await holder.query('ROLLBACK');
	await holder.end();
	await Promise.all(outcomes);
});
