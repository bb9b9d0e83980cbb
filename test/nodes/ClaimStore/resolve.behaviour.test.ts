import type { IDataObject } from 'n8n-workflow';
import { answerOf, claimHandles, settle } from '../../support/settling';
import { STALE_CLAIM, type Workbench } from '../../support/workbench';
import { ask, bring, decide, deliver, desk, look, openDesk } from './support/desk';

let workbench: Workbench;
beforeAll(async () => (workbench = await openDesk()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const history = async (id: string) => (await look(workbench, id)).history as IDataObject[];

describe.each(['received', 'processing', 'retryable_failure', 'outcome_uncertain', 'needs_review'])('a claim in %s', (state) => {
	test.each<[string, IDataObject, IDataObject, string]>([
		['completed', { decision: 'completed', outcomeReference: 'lead-7' }, { state: 'completed', outcomeReference: 'lead-7', payloadComplete: false }, 'duplicate completed'],
		['no action needed', { decision: 'noActionNeeded' }, { state: 'completed', outcomeReference: null }, 'duplicate completed'],
		['release', { decision: 'release' }, { state: 'retryable_failure', leaseExpiresAt: null }, 'new retry'],
		['needs review', { decision: 'needsReview' }, { state: 'needs_review', leaseExpiresAt: null, retryAt: null }, 'duplicate needs_review'],
	])('%s: written, with who and why; the next delivery hears it', async (_name, parameters, expected, heard) => {
		await bring(workbench, 'd1', state);
		const seen = await look(workbench, 'd1');
		const answer = await decide(workbench, seen.handle, parameters);
		expect(answer).toMatchObject({ answer: 'resolved', deliveryId: 'd1', version: Number(seen.version) + 1, resolvedBy: 'Ada', outcomeReason: 'looked it up', ...expected });
		// Now it is as Get shows it, but for the payload.
		expect(answer).toEqual({ answer: 'resolved', ...(await look(workbench, 'd1', { includePayload: false })) });
		expect((await history('d1')).at(-1)).toMatchObject({ by: 'Ada', reason: 'looked it up', state: expected.state, reference: expected.outcomeReference ?? null });
		expect(await deliver(workbench, 'd1')).toMatch(heard);
	});
});

test('a completed claim stays as it is: changed', async () => {
	await bring(workbench, 'd1', 'completed');
	const before = await workbench.row('d1');
	const seen = await look(workbench, 'd1');
	expect(await decide(workbench, seen.handle)).toEqual({ ...seen, answer: 'changed' });
	expect(await workbench.row('d1')).toEqual(before);
});

test('a claim that its owner completed meanwhile: changed, with what it is now', async () => {
	const [handle] = await claimHandles(workbench, ['d1']);
	const seen = await look(workbench, 'd1');
	await settle(workbench, [handle], { outcome: 'completed', outcomeReference: 'lead-1' });
	expect(await decide(workbench, seen.handle, { decision: 'release' })).toMatchObject({ answer: 'changed', state: 'completed', outcomeReference: 'lead-1', resolvedBy: null });
	expect(await workbench.row('d1')).toMatchObject({ state: 'completed', version: 1 });
});

test('a claim that is gone: not_found, with every key and the name that it had', async () => {
	await bring(workbench, 'd1', 'needs_review');
	const seen = await look(workbench, 'd1');
	await workbench.clear();
	const answer = await decide(workbench, seen.handle);
	expect(answer).toMatchObject({ answer: 'not_found', deliveryId: 'd1', source: 'shop', idempotencyKey: seen.idempotencyKey, state: null, handle: null, history: null });
	expect(Object.keys(answer)).toEqual(['answer', ...Object.keys(seen)]);
	expect(await workbench.rows()).toEqual([]);
});

test('the second click on the same button: changed', async () => {
	await bring(workbench, 'd1', 'outcome_uncertain');
	const { handle } = await look(workbench, 'd1');
	expect(await decide(workbench, handle, { decision: 'release' })).toMatchObject({ answer: 'resolved' });
	expect(await decide(workbench, handle, { decision: 'release' })).toMatchObject({ answer: 'changed', version: 2 });
	expect((await history('d1')).filter(({ by }) => by === 'Ada')).toHaveLength(1);
});

test('a decision can be followed by another one: with the handle of its answer', async () => {
	await bring(workbench, 'd1', 'outcome_uncertain');
	const first = await decide(workbench, (await look(workbench, 'd1')).handle);
	expect(await decide(workbench, first.handle, { decision: 'completed', outcomeReference: 'lead-7', decidedBy: 'Grace' })).toMatchObject({ answer: 'resolved', state: 'completed', resolvedBy: 'Grace' });
	expect((await history('d1')).slice(-2).map(({ by }) => by)).toEqual(['Ada', 'Grace']);
});

test('a late owner is stale: resolved', async () => {
	const [handle] = await claimHandles(workbench, ['d1']);
	await decide(workbench, (await look(workbench, 'd1')).handle, { decision: 'release' });
	expect(answerOf(await settle(workbench, [handle], { outcome: 'completed', outcomeReference: 'late-1' }))).toMatchObject({ output: STALE_CLAIM, reason: 'resolved' });
	expect(JSON.stringify(await history('d1'))).toContain('late-1');
});

test('release gives another attempt, although they were used up', async () => {
	await bring(workbench, 'd1', 'retryable_failure', { options: { maxAttempts: 1 } });
	expect(await deliver(workbench, 'd1')).toBe('duplicate needs_review, attempt 1');
	await decide(workbench, (await look(workbench, 'd1')).handle, { decision: 'release' });
	expect(await deliver(workbench, 'd1')).toBe('new retry, attempt 2');
});

test('words are kept as they were typed: quotes, markup, other scripts', async () => {
	const reason = `it's "done" <script>alert(1)</script> — Готово 😀`;
	await bring(workbench, 'd1', 'needs_review');
	expect(await decide(workbench, (await look(workbench, 'd1')).handle, { reason, decidedBy: `O'Hara "The Op"` })).toMatchObject({ outcomeReason: reason, resolvedBy: `O'Hara "The Op"` });
});

test('many records in one run: each decided by itself, and the same one twice only once', async () => {
	for (const id of ['d1', 'd2']) await bring(workbench, id, 'needs_review');
	const [one, two] = [await look(workbench, 'd1'), await look(workbench, 'd2')];
	const items = [one, two, one].map(({ handle }) => ({ json: { handle } }));
	const run = await workbench.run(desk({ operation: 'resolve', handle: '={{ $json.handle }}', decision: 'release', decidedBy: 'Ada', reason: 'because' }), { items });
	expect(run.itemsOf('Store').map(({ json, pairedItem }) => [json.deliveryId, json.answer, pairedItem])).toEqual([
		['d1', 'resolved', { item: 0 }],
		['d2', 'resolved', { item: 1 }],
		['d1', 'changed', { item: 2 }],
	]);
});

describe('refused, and nothing is written', () => {
	const good = { operation: 'resolve', decision: 'completed', outcomeReference: 'lead-7', decidedBy: 'Ada', reason: 'because' };

	test.each<[string, IDataObject, string]>([
		['without a decider', { decidedBy: '={{ "" }}' }, 'Decided By is missing'],
		['with a decider of white space', { decidedBy: '  ' }, 'Decided By is missing'],
		['with a decider whose expression gives nothing', { decidedBy: '={{ $json.nobody }}' }, 'Decided By is missing'],
		['without a reason', { reason: '={{ "" }}' }, 'Reason is missing'],
		['completed without a reference', { outcomeReference: '={{ "" }}' }, 'Outcome Reference is missing'],
		['with typed braces', { reason: '{{ $json.reason }}' }, 'Reason is fixed text that looks like an expression'],
		['with a NUL in the reason', { reason: '={{ "a\\u0000" }}' }, 'Reason contains a character that cannot be stored'],
		['with a reason as long as a book', { reason: '={{ "x".repeat(3000) }}' }, 'Reason is longer than 2048 bytes'],
		['with a decision that there is not', { decision: 'done' }, 'Decision is not one of completed, noActionNeeded, release, needsReview'],
	])('%s', async (_what, parameters, message) => {
		await bring(workbench, 'd1', 'needs_review');
		const before = await workbench.row('d1');
		const { handle } = await look(workbench, 'd1');
		await expect(ask(workbench, { ...good, handle: handle, ...parameters })).rejects.toThrow(message);
		expect(await workbench.row('d1')).toEqual(before);
	});

	test('with the handle of an owner: it does not say in which state the operator saw the claim', async () => {
		const [handle] = await claimHandles(workbench, ['d1']);
		await expect(ask(workbench, { ...good, handle })).rejects.toMatchObject({ message: 'The handle is not one of a record', description: expect.stringContaining('Claim Store gives with each record') as string });
		expect((await workbench.row('d1')).state).toBe('processing');
	});

	test.each(['={{ "" }}', 'd1', 'claim1.', '={{ undefined }}', '={{ 5 }}'])('with the handle %j', async (handle) => {
		await expect(ask(workbench, { ...good, handle })).rejects.toThrow('The handle is not one');
	});

	test('what is wrong with the last item is found before the first one is decided', async () => {
		await bring(workbench, 'd1', 'needs_review');
		const before = await workbench.row('d1');
		const { handle } = await look(workbench, 'd1');
		const run = await workbench.run(desk({ ...good, handle: '={{ $json.handle }}' }), { items: [{ json: { handle } }, { json: { handle: 'nonsense' } }] });
		expect(run.status).toBe('error');
		expect(await workbench.row('d1')).toEqual(before);
	});
});

test('Retry On Fail: what the first try decided is known as its own', async () => {
	for (const id of ['d1', 'd2']) await bring(workbench, id, 'needs_review');
	const items = [{ json: { handle: (await look(workbench, 'd1')).handle } }, { json: { handle: (await look(workbench, 'd2')).handle } }];
	// Refuses the first decision about d2; a sequence remembers it beyond the transaction.
	await workbench.database.query('CREATE SEQUENCE tries');
	await workbench.database.query(`CREATE FUNCTION refuse_once() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN IF nextval('tries') = 1 THEN RAISE 'not yet'; END IF; RETURN NEW; END $$`);
	await workbench.database.query(`CREATE TRIGGER refuse_once BEFORE UPDATE ON idempotent_claims FOR EACH ROW WHEN (OLD.delivery_id = 'd2') EXECUTE FUNCTION refuse_once()`);
	const run = await workbench.run(
		desk({ operation: 'resolve', handle: '={{ $json.handle }}', decision: 'release', decidedBy: 'Ada', reason: 'because' }, { retryOnFail: true, maxTries: 2, waitBetweenTries: 1 }),
		{ items },
	);
	await workbench.database.query('DROP TRIGGER refuse_once ON idempotent_claims');
	expect(run.outputOf('Store').map(({ deliveryId, answer }) => [deliveryId, answer])).toEqual([
		['d1', 'resolved'],
		['d2', 'resolved'],
	]);
	for (const id of ['d1', 'd2']) expect((await history(id)).filter(({ by }) => by === 'Ada')).toHaveLength(1);
});
