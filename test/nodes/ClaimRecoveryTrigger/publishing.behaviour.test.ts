import type { IDataObject } from 'n8n-workflow';
import type { TestNode } from '../../support/engine';
import { freePort } from '../../support/freePort';
import { textWith } from '../../support/matchers';
import { startProxy } from '../../support/proxy';
import { claimNode, deliveries, guarded, Workbench } from '../../support/workbench';
import { endAs, receive, RECONCILE_FIRST, recovering, taken, TRIGGER, triggerNode } from './support/recovering';

/** What a person who publishes or tries out the workflow is told, and what n8n lists of a poll that failed. */

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const down = async () => ({ store: workbench.credential({ port: await freePort(), timeoutMs: 500 }) });

describe('a wrong setting stops whoever publishes or tries it out, and nothing is taken', () => {
	test.each<[string, IDataObject, Partial<TestNode>, string]>([
		['no Action', { action: '' }, {}, 'The Action is missing'],
		['an Action that is typed like an expression', { action: '{{ $workflow.id }}' }, {}, 'Action is fixed text that looks like an expression'],
		['an Action with white space at its end', { action: 'lead ' }, {}, 'The action cannot be used'],
		['an Action whose expression gives nothing', { action: '={{ $json.action }}' }, {}, 'The expression of Action failed'],
		['no Source', { source: '' }, {}, 'The source is missing'],
		['an unknown Provider', { provider: 'carrier-pigeon' }, {}, 'The Provider is not one that this version knows'],
		['nothing to recover', { recover: [] }, {}, 'Recover is empty'],
		['an unknown kind', { recover: ['received', 'completed'] }, {}, 'Recover is not one of'],
		['a Limit of 0', { limit: 0 }, {}, 'Limit must be a whole number'],
		['half a second of lease', { leaseSeconds: 0.5 }, {}, 'Lease (Seconds) must be a whole number'],
		['a Result Field that n8n reads as an error', { options: { resultField: 'error' } }, {}, 'The Result Field cannot have this name'],
		['Always Output Data', {}, { alwaysOutputData: true }, 'Always Output Data is on'],
		['no credential', {}, { credential: undefined }, 'n8n could not give this node its Claim Store credential'],
		['a password that is wrong', {}, { credential: 'wrong' }, 'refused the login'],
	])('%s', async (_what, parameters, settings, message) => {
		await receive(workbench, ['live']);
		await workbench.run(guarded(claimNode({ operation: 'receive' })), { items: deliveries('test'), mode: 'manual' });
		const workflow = recovering(triggerNode(parameters, settings));
		const credentials = { wrong: workbench.credential({ password: 'wrong' }) };
		await expect(workbench.publish(workflow, { credentials })).rejects.toThrow(message);
		// What is required and missing, n8n itself finds before it runs the node.
		const manual = await workbench.run(workflow, { mode: 'manual', credentials }).catch((error: Error) => error);
		expect(manual instanceof Error ? manual.message : [manual.error?.message, manual.ran('Action')]).toEqual(manual instanceof Error ? textWith('has issues') : [textWith(message), false]);
		expect((await workbench.rows('shop')).map((row) => row.state)).toEqual(['received', 'received']);
	});
});

describe('a claim store that is away', () => {
	test.each(['activate', 'create', 'update', 'init', 'leadershipChange'] as const)('is no reason to be unpublished (%s): each poll that fails is listed, and work goes on as soon as it is back', async (activation) => {
		await receive(workbench, ['d1']);
		const proxy = await startProxy(workbench.database);
		await proxy.refuse();
		const credentials = { store: workbench.credential({ host: proxy.host, port: proxy.port, timeoutMs: 500 }) };
		const publication = await workbench.publish(recovering(), { activation, credentials });
		expect(publication.failures).toMatchObject([{ name: 'NodeOperationError', message: textWith('No connection to PostgreSQL'), description: textWith('Docker'), node: { name: TRIGGER } }]);
		expect(await publication.poll()).toEqual([]);
		expect(publication.failures).toHaveLength(2);
		await proxy.forward();
		expect(taken(await publication.poll())).toMatchObject([{ deliveryId: 'd1', attempt: 1 }]);
		expect(publication.failures).toHaveLength(2);
		await proxy.close();
	});

	test.each(['init', 'leadershipChange'] as const)('nor is one that n8n finds with another password when it starts (%s)', async (activation) => {
		const credentials = { store: workbench.credential({ password: 'wrong' }) };
		const publication = await workbench.publish(recovering(), { activation, credentials });
		expect(publication.failures).toMatchObject([{ message: textWith('refused the login') }]);
	});

	test('nor a setting that n8n finds wrong when it starts', async () => {
		const publication = await workbench.publish(recovering(triggerNode({ action: '' })), { activation: 'init' });
		expect(publication.failures).toMatchObject([{ message: textWith('The Action is missing') }]);
	});
});

test('the answer to a poll is lost, and the server for longer than the poll waits: the next poll starts what the first took, once', async () => {
	await receive(workbench, ['d1', 'd2', 'd3']);
	const proxy = await startProxy(workbench.database);
	const credentials = { store: workbench.credential({ host: proxy.host, port: proxy.port, timeoutMs: 700 }) };
	const lost = proxy.loseAnswerTo('WITH mine');
	void lost.happened.then(async () => await proxy.refuse());
	const recovery = await workbench.publish(recovering(triggerNode({ limit: 2 })), { credentials });
	expect([await recovery.executions(), recovery.failures]).toEqual([[], [expect.objectContaining({ message: textWith('no answer could be had') })]]);
	await proxy.forward();
	expect(taken(await recovery.poll()).map(({ deliveryId, version, attempt }) => [deliveryId, version, attempt])).toEqual([
		['d1', 2, 1],
		['d2', 2, 1],
	]);
	expect(taken(await recovery.poll()).map(({ deliveryId }) => deliveryId)).toEqual(['d3']);
	await proxy.close();
});

test('unpublished while a poll is under way: what it has taken is worked off all the same', async () => {
	await receive(workbench, ['d1']);
	const proxy = await startProxy(workbench.database);
	const credentials = { store: workbench.credential({ host: proxy.host, port: proxy.port, timeoutMs: 20_000 }) };
	const publication = await workbench.publish(recovering(triggerNode({ recover: ['uncertainOutcomes'] })), { credentials });
	await workbench.change('d1', `state = 'outcome_uncertain'`);
	const held = proxy.hold('WITH mine');
	const polling = publication.poll();
	await held.happened;
	await publication.unpublish();
	held.release();
	expect(taken(await polling, RECONCILE_FIRST)).toMatchObject([{ deliveryId: 'd1', version: 2 }]);
	expect(publication.failures).toEqual([]);
	await proxy.close();
});

describe('tried out in the editor', () => {
	const receiveTest = async (ids: string[]) => await workbench.run(guarded(claimNode({ operation: 'receive' })), { items: deliveries(...ids), mode: 'manual' });
	const fetchTestEvent = async (settings: Partial<TestNode> = {}) => await workbench.run(recovering(triggerNode({}, settings)), { mode: 'manual' });

	test('it takes one test claim at a time, and no live one', async () => {
		await receive(workbench, ['live']);
		await receiveTest(['t1', 't2']);
		const [first, second] = [await fetchTestEvent(), await fetchTestEvent()];
		expect([first, second].map((run) => taken([run]).map(({ deliveryId, environment }) => [deliveryId, environment]))).toEqual([[['t1', 'test']], [['t2', 'test']]]);
		expect(first.outputOf('Action')).toMatchObject([{ id: 't1' }]);
		expect((await workbench.row('live')).state).toBe('received');
	});

	test('what is to be reconciled leaves by its own output', async () => {
		await receiveTest(['t1']);
		await workbench.change('t1', `state = 'outcome_uncertain'`);
		const run = await fetchTestEvent();
		expect([taken([run]), taken([run], RECONCILE_FIRST).map(({ deliveryId }) => deliveryId), run.ran('Action'), run.ran('Look')]).toEqual([[], ['t1'], false, true]);
	});

	test('where there is none, it says how to make one', async () => {
		await receive(workbench, ['live']);
		const run = await fetchTestEvent();
		expect(run.error).toMatchObject({ message: 'No test claim is due', description: textWith('send a delivery to the test URL') });
		expect(run.error).toMatchObject({ description: textWith('There is no test claim of this source and action.') });
		expect((await workbench.row('live')).state).toBe('received');
	});

	test('where none is due, it says what is there', async () => {
		await receiveTest(['t1', 't2', 't3']);
		await workbench.change('t1', `state = 'completed'`);
		await fetchTestEvent();
		await workbench.change('t3', `state = 'completed'`);
		expect((await fetchTestEvent()).error).toMatchObject({ description: textWith('2 completed, 1 processing; none of them is due') });
	});

	test.each(['continueRegularOutput', 'continueErrorOutput'] as const)('whatever its On Error setting (%s), nothing leaves where there is no claim', async (onError) => {
		const run = await fetchTestEvent({ onError });
		expect([run.status, run.ran('Action'), run.ran('Look')]).toEqual(['error', false, false]);
	});

	test('a claim store that is away is said so', async () => {
		await endAs(workbench, ['d1'], { outcome: 'outcomeUncertain' });
		const run = await workbench.run(recovering(), { mode: 'manual', credentials: await down() });
		expect(run.error).toMatchObject({ message: textWith('No connection to PostgreSQL') });
	});
});
