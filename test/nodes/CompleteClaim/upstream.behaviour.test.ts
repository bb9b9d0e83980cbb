import type { IDataObject } from 'n8n-workflow';
import type { TestNode, TestWorkflow } from '../../support/engine';
import { claimNode, claimsOf, completeNode, deliveries, guarded, NEW_CLAIM, OPERATIONAL_ERROR, RECORDED, Workbench } from '../../support/workbench';
import { anyText, textWith } from '../../support/matchers';

/**
 * "Claim From: Upstream" must find the claim of each item behind every kind of node, and rather refuse than
 * settle the wrong one: that would repeat one action and forget another.
 */

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

/** Start → Claim → the given nodes in a row → Complete; all error outputs are wired. */
function between(...nodes: TestNode[]): TestWorkflow {
	const workflow = guarded();
	const names = nodes.map((node, index) => {
		workflow.nodes[`Between ${index}`] = node;
		return `Between ${index}`;
	});
	workflow.nodes.Complete = completeNode({ outcomeReference: '={{ "for " + ($json.of ?? $json.name ?? $json.id ?? "") }}' });
	const row = ['Claim', ...names, 'Complete'];
	workflow.lines = ['Start -> Claim', 'Claim[1] -> Duplicate', 'Claim[2] -> Alarm', 'Complete[2] -> Alarm', ...row.slice(1).map((name, index) => `${row[index]} -> ${name}`)];
	return workflow;
}
const type = (name: string, parameters: IDataObject = {}): TestNode => ({ type: `n8n-nodes-base.${name}`, parameters });
const named = (...names: string[]) => names.map((name) => ({ json: { id: `d-${name}`, name } }));
const columnOfAll = async (column: string) => Object.fromEntries((await workbench.rows()).map((row) => [row.delivery_id, row[column]])) as Record<string, unknown>;
const states = async () => await columnOfAll('state');
const references = async () => await columnOfAll('outcome_reference');

const abc = named('a', 'b', 'c');
const allCompleted = { 'd-a': 'completed', 'd-b': 'completed', 'd-c': 'completed' };
const allOpen = { 'd-a': 'processing', 'd-b': 'processing', 'd-c': 'processing' };

describe('each of three items finds its own claim', () => {
	test.each<[string, TestNode[]]>([
		['directly behind the guard', []],
		['behind No Operation', [type('noOp')]],
		['behind HTTP Request', [type('httpRequest')]],
		['behind HTTP Request and Edit Fields', [type('httpRequest'), type('set', { fields: '{"more":1}' })]],
		['behind two app nodes', [type('httpRequest'), type('httpRequest')]],
		['behind a Code node that hands on the claim, in another order', [type('code', { how: 'keepClaim' })]],
	])('%s', async (_name, nodes) => {
		const run = await workbench.run(between(...nodes), { items: abc });
		expect(claimsOf(run, 'Complete', OPERATIONAL_ERROR)).toEqual([]);
		expect(claimsOf(run, 'Complete', RECORDED)).toHaveLength(3);
		expect(await states()).toEqual(allCompleted);
	});

	test('item by item, not just as many', async () => {
		await workbench.run(between(type('noOp')), { items: abc });
		expect(await references()).toEqual({ 'd-a': 'for a', 'd-b': 'for b', 'd-c': 'for c' });
	});

	test('behind an If, on either branch', async () => {
		const workflow = between(type('if'), type('httpRequest'));
		workflow.nodes.Other = type('httpRequest');
		workflow.lines.push('Between 0[1] -> Other', 'Other -> Complete');
		await workbench.run(workflow, { items: abc });
		expect(await states()).toEqual(allCompleted);
	});

	test('behind a Wait, when the execution goes on from stored data', async () => {
		const workflow = between(type('httpRequest'), type('wait'));
		const waiting = await workbench.run(workflow, { items: abc, executionId: '5' });
		expect([waiting.status, await states()]).toEqual(['waiting', allOpen]);
		const run = await workbench.resume(workflow, waiting, { executionId: '5' });
		expect(claimsOf(run, 'Complete', RECORDED)).toHaveLength(3);
		expect(await states()).toEqual(allCompleted);
	});

	test('behind a sub-workflow that makes new items', async () => {
		const subWorkflows = { sub: { nodes: { Called: type('executeWorkflowTrigger'), Work: type('httpRequest') }, lines: ['Called -> Work'] } };
		await workbench.run(between(type('executeWorkflow', { workflowId: 'sub' })), { items: abc, subWorkflows });
		expect(await states()).toEqual(allCompleted);
	});

	test('inside a sub-workflow, by the handle that the items bring', async () => {
		const workflow = guarded();
		workflow.nodes.Action = type('executeWorkflow', { workflowId: 'sub' });
		const subWorkflows = { sub: { nodes: { Called: type('executeWorkflowTrigger'), Complete: completeNode() }, lines: ['Called -> Complete'] } };
		const run = await workbench.run(workflow, { items: abc, subWorkflows });
		expect(run.status).toBe('success');
		expect(await states()).toEqual(allCompleted);
	});

	test('with claims that left by New Claim between duplicates', async () => {
		await workbench.run(guarded(), { items: named('b') });
		await workbench.run(between(type('httpRequest')), { items: abc });
		expect(await states()).toEqual({ ...allCompleted, 'd-b': 'processing' });
	});

	test('with a Result Field of its own', async () => {
		const workflow = between(type('httpRequest'));
		workflow.nodes.Claim = claimNode({ options: { resultField: 'guard' } });
		await workbench.run(workflow, { items: abc.map(({ json }) => ({ json: { ...json, claim: 'foreign' } })) });
		expect(await states()).toEqual(allCompleted);
	});

	test('with a Result Field that both nodes share, at the item itself', async () => {
		const workflow = between(type('code', { how: 'newObjects', mode: 'runOnceForEachItem' }));
		workflow.nodes.Claim = claimNode({ options: { resultField: 'guard' } });
		workflow.nodes.Complete = completeNode({ options: { resultField: 'guard' } });
		const run = await workbench.run(workflow, { items: abc });
		expect(claimsOf(run, 'Complete', RECORDED, 'guard')).toHaveLength(3);
	});

	test('the nearest of two guards in a row', async () => {
		const workflow = between(claimNode({ action: 'invoice' }), type('httpRequest'));
		workflow.lines.push('Between 0[2] -> Alarm');
		await workbench.run(workflow, { items: named('a') });
		expect((await workbench.rows()).map((row) => [row.action, row.state])).toEqual([
			['invoice', 'completed'],
			['lead', 'processing'],
		]);
	});
});

describe('in a loop of one item each, where nothing can be mixed up', () => {
	const looped = (body: TestNode): TestWorkflow => ({
		nodes: { ...between(body).nodes, Loop: type('splitInBatches'), Next: type('noOp') },
		lines: ['Start -> Loop', 'Loop[1] -> Claim', 'Claim -> Between 0', 'Between 0 -> Complete', 'Complete -> Next', 'Complete[1] -> Next', 'Complete[2] -> Next', 'Claim[1] -> Next', 'Claim[2] -> Alarm', 'Next -> Loop'],
	});

	test.each<[string, TestNode]>([
		['HTTP Request', type('httpRequest')],
		['Aggregate', type('aggregate')],
		['a Code node with one new object per item', type('code', { how: 'newObjects' })],
		['a Code node with one new object for all', type('code', { how: 'oneOfMany' })],
	])('behind %s', async (_name, body) => {
		const run = await workbench.run(looped(body), { items: abc });
		expect(run.timesRun('Complete')).toBe(3);
		expect(claimsOf(run, 'Complete', OPERATIONAL_ERROR)).toEqual([]);
		expect(await states()).toEqual(allCompleted);
	});
});

describe('in doubt it refuses, and says what to do', () => {
	const refused = async (items: typeof abc, ...nodes: TestNode[]) => {
		const run = await workbench.run(between(...nodes), { items });
		expect(claimsOf(run, 'Complete', RECORDED)).toEqual([]);
		const claims = claimsOf(run, 'Complete', OPERATIONAL_ERROR);
		expect(claims.length).toBeGreaterThan(0);
		for (const claim of claims) expect(claim).toMatchObject({ status: 'error', responseCode: 503, error: { kind: 'invalid_setting', hint: anyText } });
		return claims;
	};

	test('an item that was aggregated from several claims', async () => {
		const [claim] = await refused(abc, type('aggregate'));
		expect(claim.error?.message).toContain('several claims');
		expect(await states()).toEqual(allOpen);
	});

	test('items that a Merge linked to two claims', async () => {
		const workflow = between(type('if'), type('merge'));
		workflow.lines.push('Between 0[1] -> Between 1[1]');
		const run = await workbench.run(workflow, { items: named('a', 'b') });
		expect(claimsOf(run, 'Complete', OPERATIONAL_ERROR)).toMatchObject([{ error: { kind: 'invalid_setting', message: textWith('several claims') } }]);
		expect(await states()).toEqual({ 'd-a': 'processing', 'd-b': 'processing' });
	});

	test.each(['reversed', 'newObjects', 'oneOfMany', 'dropFirst'])('several claims and a Code node without pairing or claim (%s)', async (how) => {
		const claims = await refused(abc, type('code', { how }));
		expect(claims[0].error?.hint).toMatch(/claim.*pairedItem/);
		expect(await states()).toEqual(allOpen);
	});

	test('the same with more nodes behind the Code node', async () => {
		await refused(abc, type('code', { how: 'reversed' }), type('httpRequest'));
		expect(await states()).toEqual(allOpen);
	});

	test('no claim anywhere', async () => {
		const run = await workbench.run({ nodes: { Start: type('webhook'), Complete: completeNode(), Alarm: type('noOp') }, lines: ['Start -> Complete', 'Complete[2] -> Alarm'] }, { items: deliveries('d1') });
		expect(claimsOf(run, 'Complete', OPERATIONAL_ERROR)).toMatchObject([{ handle: null, deliveryId: null, error: { kind: 'invalid_setting' } }]);
	});

	test('behind Known Duplicate: somebody else\'s claim is not settled', async () => {
		await workbench.run(guarded(), { items: named('a') });
		const workflow = between(type('httpRequest'));
		workflow.lines.push('Claim[1] -> Complete');
		const run = await workbench.run(workflow, { items: named('a') });
		expect(claimsOf(run, 'Complete', RECORDED)).toEqual([]);
		expect(claimsOf(run, 'Complete', OPERATIONAL_ERROR)).toMatchObject([{ error: { kind: 'invalid_setting' } }]);
		expect(await states()).toEqual({ 'd-a': 'processing' });
	});

	test('behind Known Duplicate while the execution has a claim of another item open: neither is settled', async () => {
		await workbench.run(guarded(), { items: named('a') });
		const workflow = between();
		workflow.lines = ['Start -> Claim', 'Claim -> Action', 'Claim[2] -> Alarm', 'Claim[1] -> Between', 'Between -> Complete', 'Complete[2] -> Alarm'];
		workflow.nodes.Between = type('httpRequest');
		const run = await workbench.run(workflow, { items: named('a', 'b') });
		expect(claimsOf(run, 'Complete', OPERATIONAL_ERROR)).toHaveLength(1);
		expect(await states()).toEqual({ 'd-a': 'processing', 'd-b': 'processing' });
	});

	test('behind Known Duplicate, paired to nothing: the open claim of another item is not settled in its place', async () => {
		await workbench.run(guarded(), { items: named('a', 'c', 'd') });
		const workflow = between();
		workflow.nodes.Between = type('code', { how: 'dropFirst' });
		workflow.lines = ['Start -> Claim', 'Claim -> Action', 'Claim[2] -> Alarm', 'Claim[1] -> Between', 'Between -> Complete', 'Complete[2] -> Alarm'];
		await workbench.run(workflow, { items: named('a', 'b', 'c', 'd') });
		expect(await states()).toEqual({ ...allOpen, 'd-d': 'processing' });
	});

	test('behind receive: what it stores is not this execution\'s to settle', async () => {
		const workflow = between(type('httpRequest'));
		workflow.nodes.Claim = claimNode({ operation: 'receive' });
		const run = await workbench.run(workflow, { items: named('a') });
		expect(claimsOf(run, 'Complete', OPERATIONAL_ERROR)).toMatchObject([{ error: { kind: 'invalid_setting' } }]);
		expect(await states()).toEqual({ 'd-a': 'received' });
	});
});

describe('what a sender writes into a body', () => {
	/** The guard, then a node that puts the body's fields over the item, then Complete Claim. */
	const spread = (fields: object) => between(type('set', { fields: JSON.stringify(fields) }));

	test('is no handle of this execution: somebody else\'s claim is not settled', async () => {
		const victim = claimsOf(await workbench.run(guarded(), { items: named('victim'), executionId: '1' }), 'Claim', NEW_CLAIM)[0];
		await workbench.run(spread({ claim: victim }), { items: named('a'), executionId: '2' });
		expect(await states()).toEqual({ 'd-a': 'completed', 'd-victim': 'processing' });
	});

	test.each([{ claim: { plan: 'gold' } }, { claim: { status: 'new', handle: 'claim1.xyz', idempotencyKey: null } }])('does not keep the item\'s own claim from being found: %j', async (fields) => {
		await workbench.run(spread(fields), { items: named('a') });
		expect(await states()).toEqual({ 'd-a': 'completed' });
	});
});

describe('new and known deliveries brought together again', () => {
	const together = (...behind: TestNode[]): TestWorkflow => {
		const workflow = between(type('noOp'), { type: 'test.append' }, ...behind);
		workflow.lines = workflow.lines.filter((line) => line !== 'Claim[1] -> Duplicate');
		workflow.lines.push('Claim[1] -> Between 1[1]');
		return workflow;
	};
	beforeEach(async () => void (await workbench.run(guarded(), { items: named('a', 'c'), executionId: '1' })));

	test('with pairing: each is what it is', async () => {
		const run = await workbench.run(together(type('httpRequest')), { items: named('a', 'b', 'c'), executionId: '2' });
		expect(claimsOf(run, 'Complete', OPERATIONAL_ERROR)).toHaveLength(2);
		expect(await states()).toEqual({ 'd-a': 'processing', 'd-b': 'completed', 'd-c': 'processing' });
	});

	test('behind a Code node that gives no pairing: none is settled', async () => {
		const run = await workbench.run(together(type('code', { how: 'reversed' })), { items: named('a', 'b', 'c'), executionId: '2' });
		expect(claimsOf(run, 'Complete', RECORDED)).toEqual([]);
		expect(await states()).toEqual(allOpen);
	});
});

describe('the only claim that this execution has open', () => {
	test.each(['newObjects', 'oneOfMany'])('serves a Code node without pairing (%s)', async (how) => {
		await workbench.run(between(type('code', { how })), { items: named('a') });
		expect(await states()).toEqual({ 'd-a': 'completed' });
	});

	test('serves an aggregated item', async () => {
		await workbench.run(between(type('aggregate')), { items: named('a') });
		expect(await states()).toEqual({ 'd-a': 'completed' });
	});

	test('serves a branch that does not come from the guard', async () => {
		const workflow = between();
		workflow.lines = ['Start -> Claim', 'Claim -> Action', 'Claim[1] -> Duplicate', 'Claim[2] -> Alarm', 'Start -> Later', 'Later -> Complete', 'Complete[2] -> Alarm'];
		workflow.nodes.Later = type('code', { how: 'oneOfMany' });
		const run = await workbench.run(workflow, { items: named('a') });
		expect(run.status).toBe('success');
		expect(await states()).toEqual({ 'd-a': 'completed' });
	});

	test('is not another execution\'s', async () => {
		await workbench.run(guarded(), { items: named('a'), executionId: '1' });
		const run = await workbench.run({ nodes: { Start: type('webhook'), Complete: completeNode(), Alarm: type('noOp') }, lines: ['Start -> Complete', 'Complete[2] -> Alarm'] }, { executionId: '2' });
		expect(claimsOf(run, 'Complete', OPERATIONAL_ERROR)).toHaveLength(1);
		expect(await states()).toEqual({ 'd-a': 'processing' });
	});
});

test('a Code node that pairs its items itself, in another order, keeps each with its claim', async () => {
	const workflow = between(type('code', { how: 'explicitPairing' }));
	const run = await workbench.run(workflow, { items: abc });
	const recorded = await references();
	const refused = claimsOf(run, 'Complete', OPERATIONAL_ERROR).length;
	// Right or refused: never crossed.
	for (const name of ['a', 'b', 'c']) expect([null, `for ${name}`]).toContain(recorded[`d-${name}`]);
	expect(Object.values(recorded).filter(Boolean)).toHaveLength(3 - refused);
});
