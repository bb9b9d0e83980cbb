import { freePort } from '../../support/freePort';
import { anyText } from '../../support/matchers';
import { LEASE_OVER } from '../../support/timePassed';
import { claimNode, deliveries, guarded, type Workbench } from '../../support/workbench';
import { ask, bring, openDesk } from './support/desk';

/** Summarize, Purge and Check. */

let workbench: Workbench;
beforeAll(async () => (workbench = await openDesk()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const PURGE_DUE = "purge_after = now() - interval '1 s'";
const manually = async (...ids: string[]) => await workbench.run(guarded(), { items: deliveries(...ids), mode: 'manual' });
const ids = async () => (await workbench.rows()).map((row) => row.delivery_id);

describe('Summarize', () => {
	test('one item: totals of what is live, and the counts that they are made of', async () => {
		await bring(workbench, 'a', 'received');
		await bring(workbench, 'b', 'processing');
		await workbench.change('b', `${LEASE_OVER}, first_seen_at = '2020-01-01T00:00:00Z'`);
		await bring(workbench, 'c', 'needs_review', { options: { storePayload: 'never' } });
		await bring(workbench, 'd', 'completed', { source: 'store' });
		await bring(workbench, 'e', 'retryable_failure');
		await bring(workbench, 'f', 'outcome_uncertain');
		await manually('t1');
		const items = await ask(workbench, { operation: 'summarize' });
		expect(items).toEqual([
			{
				...{ environment: 'live', claims: 6, unfinished: 5, oldestUnfinishedAt: '2020-01-01T00:00:00.000Z', leasesExpired: 1, unfinishedWithoutPayload: 1 },
				...{ received: 1, processing: 1, completed: 1, retryableFailure: 1, outcomeUncertain: 1, needsReview: 1 },
				rows: ['needs_review', 'outcome_uncertain', 'processing', 'received', 'retryable_failure', 'completed'].map((state) => ({
					...{ environment: 'live', source: state === 'completed' ? 'store' : 'shop', state, claims: 1, oldestAt: anyText },
					...{ leasesExpired: state === 'processing' ? 1 : 0, withoutPayload: state === 'needs_review' ? 1 : 0 },
				})),
			},
		]);
		// No personal data: an alert can carry all of it.
		for (const id of ['t1', 'handle', 'payload":']) expect(JSON.stringify(items)).not.toContain(id);
	});

	test.each([
		['all', 3, 2],
		['live', 1, 0],
		['test', 2, 2],
	])('environment %s', async (environment, claims, unfinished) => {
		await bring(workbench, 'a', 'completed');
		await manually('t1', 't2');
		expect(await ask(workbench, { operation: 'summarize', environment })).toMatchObject([{ environment, claims, unfinished, processing: unfinished }]);
	});

	test('with nothing there it says so with every key', async () => {
		const [item] = await ask(workbench, { operation: 'summarize' });
		expect(item).toMatchObject({ claims: 0, unfinished: 0, oldestUnfinishedAt: null, leasesExpired: 0, needsReview: 0, rows: [] });
	});

	test('only completed claims: nothing is unfinished, however old', async () => {
		await bring(workbench, 'a', 'completed');
		expect(await ask(workbench, { operation: 'summarize' })).toMatchObject([{ claims: 1, unfinished: 0, oldestUnfinishedAt: null, unfinishedWithoutPayload: 0 }]);
	});
});

describe('Purge', () => {
	test('past retention: says what it would remove, removes that, and leaves unfinished work', async () => {
		for (const [id, state] of Object.entries({ a: 'completed', b: 'completed', c: 'processing', d: 'completed' })) await bring(workbench, id, state);
		await manually('t1');
		for (const id of ['a', 'c', 'd', 't1']) await workbench.change(id, PURGE_DUE);
		const counted = { purge: 'pastRetention', claims: 3, live: 2, test: 1, limitReached: false };
		expect(await ask(workbench, { operation: 'purge', dryRun: true })).toEqual([{ ...counted, dryRun: true }]);
		expect(await ids()).toEqual(['a', 'b', 'c', 'd', 't1']);
		expect(await ask(workbench, { operation: 'purge' })).toEqual([{ ...counted, dryRun: false }]);
		expect(await ids()).toEqual(['b', 'c']);
	});

	test('all test claims: the same delivery can be tried again, and no live claim is touched', async () => {
		await bring(workbench, 'a', 'completed');
		await workbench.change('a', PURGE_DUE);
		await manually('t1');
		expect((await manually('t1')).outputOf('Claim', 1)).toHaveLength(1);
		expect(await ask(workbench, { operation: 'purge', purge: 'allTests' })).toMatchObject([{ purge: 'allTests', claims: 1, live: 0, test: 1 }]);
		expect(await ids()).toEqual(['a']);
		expect((await manually('t1')).outputOf('Claim', 0)).toHaveLength(1);
	});

	test('no more than Limit, and says that there is more', async () => {
		await workbench.run(guarded(claimNode({ operation: 'deduplicate' })), { items: deliveries('a', 'b', 'c') });
		await workbench.database.query(`UPDATE idempotent_claims SET ${PURGE_DUE}`);
		expect(await ask(workbench, { operation: 'purge', limit: 2, dryRun: true })).toMatchObject([{ claims: 2, limitReached: true }]);
		expect(await ask(workbench, { operation: 'purge', limit: 2 })).toMatchObject([{ claims: 2, limitReached: true }]);
		expect(await ids()).toHaveLength(1);
		expect(await ask(workbench, { operation: 'purge', limit: 2 })).toMatchObject([{ claims: 1, limitReached: false }]);
	});

	test.each([
		['a Dry Run whose expression gives nothing', { dryRun: '={{ $json.nothing }}' }, 'Dry Run is not one of true, false'],
		['a Limit of 0', { limit: 0 }, 'Limit must be a whole number from 1 to 10000000'],
		['a choice that there is not', { purge: 'everything' }, 'Purge is not one of pastRetention, allTests'],
	])('%s removes nothing', async (_what, parameters, message) => {
		await bring(workbench, 'a', 'completed');
		await workbench.change('a', PURGE_DUE);
		await expect(ask(workbench, { operation: 'purge', ...parameters })).rejects.toThrow(message);
		expect(await ids()).toEqual(['a']);
	});

	test('a user without the right to delete hears which right it is', async () => {
		await bring(workbench, 'a', 'completed');
		await workbench.change('a', PURGE_DUE);
		const role = `desk_${workbench.database.database}`;
		await workbench.database.query(`CREATE ROLE ${role} LOGIN PASSWORD 'app-only'`);
		await workbench.database.query(`GRANT SELECT, INSERT, UPDATE ON idempotent_claims TO ${role}`);
		const credentials = { store: workbench.credential({ user: role, password: 'app-only' }) };
		try {
			await expect(ask(workbench, { operation: 'purge' }, { credentials })).rejects.toMatchObject({
				message: `The database user "${role}" lacks the right DELETE on "public"."idempotent_claims"`,
				description: expect.stringContaining('GRANT DELETE ON "public"."idempotent_claims"') as string,
			});
			expect(await ask(workbench, { operation: 'purge', dryRun: true }, { credentials })).toMatchObject([{ claims: 1 }]);
			expect(await ask(workbench, { operation: 'check', selfTest: true }, { credentials })).toMatchObject([
				{ ok: true, problems: [], selfTest: { passed: true, leftBehind: expect.stringContaining('lacks the right DELETE') as string } },
			]);
		} finally {
			await workbench.database.query(`DROP OWNED BY ${role}`);
			await workbench.database.query(`DROP ROLE ${role}`);
		}
		expect(await ids()).toContain('a');
	});
});

describe('Check', () => {
	test('a store that is fine', async () => {
		await bring(workbench, 'a', 'received');
		expect(await ask(workbench, { operation: 'check' })).toEqual([{ ok: true, summary: expect.stringMatching(/^Connected to PostgreSQL .* is ready\.$/) as string, problems: [], selfTest: null }]);
		expect(await ids()).toEqual(['a']);
	});

	test('Self-Test: one of a hundred claims is new, and nothing of it stays', async () => {
		expect(await ask(workbench, { operation: 'check', selfTest: true })).toMatchObject([{ ok: true, selfTest: { passed: true, newClaims: 1, duplicates: 99, error: null, leftBehind: null } }]);
		expect(await ids()).toEqual([]);
	});

	test('a server that cannot be reached is a finding, not a failure of the workflow', async () => {
		const store = workbench.credential({ port: await freePort() });
		expect(await ask(workbench, { operation: 'check', selfTest: true }, { credentials: { store } })).toMatchObject([{ ok: false, summary: '', problems: [expect.stringContaining('No connection to PostgreSQL') as string], selfTest: null }]);
	});

	test('what is wrong with the table is said, and a self-test that fails is a problem of its own', async () => {
		await bring(workbench, 'a', 'received');
		await workbench.database.query(`CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`);
		await workbench.database.query('CREATE TRIGGER swallow BEFORE INSERT ON idempotent_claims FOR EACH ROW EXECUTE FUNCTION swallow()');
		const [item] = await ask(workbench, { operation: 'check', selfTest: true });
		await workbench.database.query('DROP TRIGGER swallow ON idempotent_claims');
		expect(item).toMatchObject({ ok: false, selfTest: { passed: false, newClaims: 0, duplicates: 0 } });
		expect((item.problems as string[]).at(-1)).toMatch(/^The self-test failed: of a hundred simultaneous claims of one key, 0 were new and 0 duplicates; right is 1 and 99\. ./);
	});
});
