import type { RunOptions, TestNode } from '../../support/engine';
import { freePort } from '../../support/freePort';
import { startProxy, type Proxy } from '../../support/proxy';
import { answerOf, claimHandles, settle, settling } from '../../support/settling';
import { claimsOf, completeNode, deliveries, guarded, OPERATIONAL_ERROR, RECORDED, Workbench } from '../../support/workbench';

let workbench: Workbench;
let proxy: Proxy;
let closedPort: number;
beforeAll(async () => {
	workbench = await Workbench.open();
	proxy = await startProxy(workbench.database);
	closedPort = await freePort();
});
afterEach(async () => await workbench.clear());
afterAll(async () => {
	await proxy.close();
	await workbench.close();
});

const down = () => ({ store: workbench.credential({ port: closedPort }) });
const throughProxy = () => ({ store: workbench.credential({ port: proxy.port }) });
const broken = "={{ $('No such node').item.json.id }}";

const everySetting: Array<Partial<TestNode>> = [];
for (const onError of [undefined, 'continueRegularOutput', 'continueErrorOutput'] as const) {
	for (const alwaysOutputData of [false, true]) {
		for (const retryOnFail of [false, true]) everySetting.push({ onError, alwaysOutputData, retryOnFail, maxTries: 2, waitBetweenTries: 1 });
	}
}

type Credentials = RunOptions['credentials'];
const good = (): Credentials => undefined;

test.each<[string, string, object, () => Credentials]>([
	['the database is unreachable', 'store_unreachable', {}, down],
	['the password is wrong', 'store_denied', {}, () => ({ store: workbench.credential({ password: 'wrong' }) })],
	['the credential cannot be decrypted', 'invalid_setting', {}, () => ({ store: 'encrypted with another key' as const })],
	['the expression of Outcome fails', 'invalid_setting', { outcome: broken }, good],
	['the expression of Claim From fails', 'invalid_setting', { claimFrom: broken }, good],
	['the expression of Handle fails', 'invalid_setting', { handle: broken }, good],
	['the expression of Outcome Reference fails', 'invalid_setting', { outcomeReference: broken }, good],
	['an expression in the Options fails', 'invalid_setting', { options: { result: broken } }, good],
	['the Outcome is unknown', 'invalid_setting', { outcome: 'vanished' }, good],
	['the lease is none', 'invalid_setting', { outcome: 'extendLease', leaseSeconds: 0 }, good],
])('%s: nothing leaves by Recorded or Stale Claim, under every setting', async (_name, kind, parameters, credentials) => {
	const handles = await claimHandles(workbench, ['d1', 'd2']);
	for (const settings of everySetting) {
		const items = handles.map((handle) => ({ json: { handle } }));
		const workflow = settling({ claimFrom: 'handle', handle: '={{ $json.handle }}', ...parameters }, settings);
		const run = await workbench.run(workflow, { items, credentials: credentials() });
		expect({ settings, done: run.ran('Done'), stale: run.ran('Stale'), status: run.status, kinds: claimsOf(run, 'Complete', OPERATIONAL_ERROR).map(({ error }) => error?.kind) }).toEqual({
			settings,
			done: false,
			stale: false,
			status: settings.alwaysOutputData ? 'error' : 'success',
			kinds: settings.alwaysOutputData ? [] : [kind, kind],
		});
	}
	expect((await workbench.rows()).map((row) => row.state)).toEqual(['processing', 'processing']);
});

test('a wrong word for the outcome keeps the claim in sight: its identity and its handle', async () => {
	const [handle] = await claimHandles(workbench, ['d1']);
	const run = await workbench.run(settling({ claimFrom: 'handle', handle, options: { result: 'x'.repeat(70_000) } }), {});
	expect(claimsOf(run, 'Complete', OPERATIONAL_ERROR)).toMatchObject([{ handle, deliveryId: 'd1', error: { kind: 'invalid_setting' } }]);
});

// Often a Retry-After header. What cannot be read as seconds must not leave the claim open.
test.each<[unknown, number]>([
	[0.5, 1],
	['120', 120],
	[172_800, 86_400],
	[-5, 0],
	['Wed, 21 Oct 2026 07:28:00 GMT', 60],
])('Retry After %j means %d seconds', async (retryAfterSeconds, seconds) => {
	const [handle] = await claimHandles(workbench, ['d1']);
	const run = await workbench.run(settling({ claimFrom: 'handle', handle, outcome: 'retryableFailure', retryAfterSeconds: `={{ ${JSON.stringify(retryAfterSeconds)} }}` }), {});
	const [claim] = claimsOf(run, 'Complete', RECORDED);
	const { updated_at: at } = (await workbench.row('d1')) as { updated_at: Date };
	expect(Math.round((Date.parse(String(claim.retryAt)) - at.getTime()) / 1000)).toBe(seconds);
});

// Refusing it would leave the claim open although the action is done.
test('a foreign field "claim" is replaced, or kept beside another Result Field; the outcome is recorded either way', async () => {
	const [handle] = await claimHandles(workbench, ['d1']);
	const run = await workbench.run(settling({ claimFrom: 'handle', handle }), { items: [{ json: { claim: 'insurance 12' } }] });
	expect(run.outputOf('Done')).toMatchObject([{ claim: { status: 'recorded', deliveryId: 'd1' } }]);
	const other = await workbench.run(settling({ claimFrom: 'handle', handle, options: { resultField: 'settled' } }), { items: [{ json: { claim: 'insurance 12' } }] });
	expect(other.outputOf('Done')).toMatchObject([{ claim: 'insurance 12', settled: { status: 'recorded' } }]);
});

describe('Operational Error not connected', () => {
	const unconnected = () => {
		const workflow = guarded();
		workflow.nodes.Complete = completeNode();
		workflow.nodes.Done = { type: 'n8n-nodes-base.noOp' };
		workflow.nodes.Aggregate = { type: 'n8n-nodes-base.aggregate' };
		workflow.lines.push('Action -> Aggregate', 'Aggregate -> Complete', 'Complete -> Done');
		return workflow;
	};

	test.each(['webhook', 'trigger', 'integrated', 'error'] as const)('mode %s: the execution fails', async (mode) => {
		const run = await workbench.run(unconnected(), { mode, items: deliveries('d1', 'd2') });
		expect([run.status, run.ran('Done')]).toEqual(['error', false]);
		expect((await workbench.rows()).map((row) => row.state)).toEqual(['processing', 'processing']);
	});

	test('with Retry On Fail too', async () => {
		const workflow = unconnected();
		Object.assign(workflow.nodes.Complete, { retryOnFail: true, maxTries: 2, waitBetweenTries: 1 });
		const run = await workbench.run(workflow, { items: deliveries('d1', 'd2') });
		expect([run.status, run.ran('Done')]).toEqual(['error', false]);
	});

	test('a manual run: a hint, and the item to look at', async () => {
		const run = await workbench.run(unconnected(), { mode: 'manual', items: deliveries('d1', 'd2') });
		expect(run.status).toBe('success');
		expect(run.hintsOf('Complete').join(' ')).toContain('Operational Error is not connected');
		expect(claimsOf(run, 'Complete', OPERATIONAL_ERROR)).toHaveLength(1);
	});

	test.each(['continueRegularOutput', 'continueErrorOutput'] as const)('On Error "%s": the execution goes on, nothing is called recorded', async (onError) => {
		const workflow = unconnected();
		workflow.nodes.Complete.onError = onError;
		const run = await workbench.run(workflow, { items: deliveries('d1', 'd2') });
		expect([run.status, run.ran('Done')]).toEqual(['success', false]);
	});

	test('Retry On Fail records what the first try could not', async () => {
		const [handle] = await claimHandles(workbench, ['d1']);
		let tries = 0;
		const store = () => workbench.credential(tries++ === 0 ? { port: closedPort } : {});
		const workflow = settling({ claimFrom: 'handle', handle }, { retryOnFail: true, maxTries: 2, waitBetweenTries: 1 });
		workflow.lines = ['Start -> Complete', 'Complete -> Done'];
		const run = await workbench.run(workflow, { credentials: { store } });
		expect([run.status, tries, claimsOf(run, 'Complete', RECORDED).length]).toEqual(['success', 2, 1]);
	});
});

test.each(['completed', 'noActionNeeded', 'retryableFailure', 'outcomeUncertain', 'needsReview', 'extendLease'])('%s, run twice because the item has a field "error": recorded once', async (outcome) => {
	const [handle] = await claimHandles(workbench, ['d1']);
	const before = ((await workbench.row('d1')).history as unknown[]).length;
	const workflow = settling({ claimFrom: 'handle', handle, outcome }, { retryOnFail: true, maxTries: 3, waitBetweenTries: 1 });
	const run = await workbench.run(workflow, { items: [{ json: { error: 'of the sender' } }] });
	expect(claimsOf(run, 'Complete', RECORDED)).toHaveLength(1);
	expect((await workbench.row('d1')).history).toHaveLength(before + (outcome === 'extendLease' ? 0 : 1));
});

describe('the answer to an outcome is lost', () => {
	test('it is sent again and found recorded: Recorded, one history entry', async () => {
		const [handle] = await claimHandles(workbench, ['d1']);
		const entries = async () => ((await workbench.row('d1')).history as unknown[]).length;
		const before = await entries();
		const lost = proxy.loseAnswerTo('UPDATE');
		expect(answerOf(await settle(workbench, [handle], { outcomeReference: 'lead-1' }, { credentials: throughProxy() }))).toMatchObject({ output: RECORDED, state: 'completed', outcome: { reference: 'lead-1' } });
		await lost.happened;
		expect(await entries()).toBe(before + 1);
	});

	test.each(['retryableFailure', 'outcomeUncertain', 'needsReview', 'noActionNeeded', 'extendLease'])('%s too', async (outcome) => {
		const [handle] = await claimHandles(workbench, ['d1']);
		const lost = proxy.loseAnswerTo('UPDATE');
		expect(answerOf(await settle(workbench, [handle], { outcome }, { credentials: throughProxy() }))).toMatchObject({ output: RECORDED });
		await lost.happened;
	});

	test('every answer lost: outcome_unknown, not Stale Claim; asking again later says Recorded', async () => {
		const [handle] = await claimHandles(workbench, ['d1']);
		for (let times = 0; times < 20; times++) proxy.loseAnswerTo('UPDATE');
		const unknown = answerOf(await settle(workbench, [handle], { outcomeReference: 'lead-1' }, { credentials: throughProxy() }));
		proxy.forgetOrders();
		expect(unknown).toMatchObject({ output: OPERATIONAL_ERROR, responseCode: 503, error: { kind: 'outcome_unknown' } });
		expect(answerOf(await settle(workbench, [handle], { outcomeReference: 'lead-1' }))).toMatchObject({ output: RECORDED });
	});

	test('cut before it reaches the server: recorded by the repeat', async () => {
		const [handle] = await claimHandles(workbench, ['d1']);
		proxy.cutBefore('UPDATE');
		expect(answerOf(await settle(workbench, [handle], {}, { credentials: throughProxy() }))).toMatchObject({ output: RECORDED });
	});
});

test('one item with an error of the store: every item of the run says 503', async () => {
	const handles = await claimHandles(workbench, ['d1', 'd2']);
	const holder = await workbench.transaction();
	await holder.query("SELECT 1 FROM idempotent_claims WHERE delivery_id = 'd2' FOR UPDATE");
	try {
		const run = await settle(workbench, handles, {}, { credentials: { store: workbench.credential({ timeoutMs: 300 }) } });
		expect(claimsOf(run, 'Complete', RECORDED)).toMatchObject([{ deliveryId: 'd1', responseCode: 503 }]);
		expect(claimsOf(run, 'Complete', OPERATIONAL_ERROR)).toMatchObject([{ deliveryId: 'd2', responseCode: 503, error: { kind: 'store_busy' } }]);
		expect(run.ran('Stale')).toBe(false);
	} finally {
		await holder.rollBack();
	}
	expect((await workbench.rows()).map((row) => row.state)).toEqual(['completed', 'processing']);
});
