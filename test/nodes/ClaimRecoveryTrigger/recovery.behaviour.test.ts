import type { INodeType } from 'n8n-workflow';
import { anyText, textLike, textWith } from '../../support/matchers';
import { testNodeTypes } from '../../support/nodeTypes';
import { LEASE_OVER, RETRY_DUE } from '../../support/timePassed';
import { claimNode, completeNode, deliveries, guarded, Workbench } from '../../support/workbench';
import { endAs, leaveBehind, READY_TO_RUN, receive, RECONCILE_FIRST, recovering, taken, TRIGGER, triggerNode } from './support/recovering';

/** What the trigger starts executions for, what those get, and what becomes of the claims. */

/** Fails for the item that says so. */
const failsForBad: INodeType = {
	...testNodeTypes['test.fail'],
	async execute() {
		const items = this.getInputData();
		if (items.some(({ json }) => json.id === 'bad')) throw new Error('The destination answered 500');
		return [items];
	},
};

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open({ 'test.failsForBad': failsForBad })));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const stateOf = async (id: string) => (await workbench.row(id)).state;

test('each claim starts an execution of its own, with the stored delivery and its claim', async () => {
	const parameters = { operation: 'receive', options: { account: 'acme', eventType: 'lead.created' } };
	await workbench.run(guarded(claimNode(parameters)), { items: [{ json: { id: 'd1', body: { email: 'lead@example.com' } } }, { json: { id: 'd2' } }] });
	const publication = await workbench.publish(recovering());
	const executions = await publication.executions();
	expect(executions.map(({ status }) => status)).toEqual(['success', 'success']);
	expect(executions.map((execution) => execution.outputOf(TRIGGER, RECONCILE_FIRST))).toEqual([[], []]);
	expect(executions.map((execution) => execution.outputOf('Action').map(({ id }) => id))).toEqual([['d1'], ['d2']]);
	expect(executions[0].outputOf(TRIGGER)).toEqual([
		{
			id: 'd1',
			body: { email: 'lead@example.com' },
			claim: {
				status: 'new',
				reason: 'received',
				responseCode: 200,
				handle: textLike(/^claim1\./),
				idempotencyKey: textLike(/^[0-9a-f-]{36}$/),
				environment: 'live',
				source: 'shop',
				account: 'acme',
				deliveryId: 'd1',
				action: 'lead',
				eventType: 'lead.created',
				state: 'processing',
				version: 2,
				attempt: 1,
				leaseExpiresAt: textLike(/Z$/),
				retryAt: null,
				firstSeenAt: textLike(/Z$/),
				payloadChanged: null,
				payloadComplete: true,
				outcome: null,
				owner: { workflowId: 'recovery', executionId: anyText, nodeName: TRIGGER },
				error: null,
			},
		},
	]);
	expect([await publication.poll(), publication.failures]).toEqual([[], []]);
});

describe('a claim leaves', () => {
	test.each<[string, () => Promise<void>, number, object]>([
		['stored for later', async () => await receive(workbench, ['d1']), READY_TO_RUN, { reason: 'received', state: 'processing', version: 2, attempt: 1 }],
		[
			'failed without effect and due',
			async () => {
				await endAs(workbench, ['d1'], { outcome: 'retryableFailure', reason: 'the CRM answered 429' });
				await workbench.change('d1', RETRY_DUE);
			},
			READY_TO_RUN,
			{ reason: 'retry', state: 'processing', version: 2, attempt: 2, outcome: null, retryAt: null },
		],
		[
			'left behind where work is taken over',
			async () => {
				await leaveBehind(workbench, ['d1'], { options: { whenLeaseExpires: 'takeOver' } });
				await workbench.change('d1', LEASE_OVER);
			},
			READY_TO_RUN,
			{ reason: 'lease_expired', state: 'processing', version: 2, attempt: 2 },
		],
		[
			'left behind where the outcome is uncertain then',
			async () => {
				await leaveBehind(workbench, ['d1']);
				await workbench.change('d1', LEASE_OVER);
			},
			RECONCILE_FIRST,
			{ reason: 'outcome_uncertain', state: 'outcome_uncertain', version: 2, attempt: 1, outcome: { reason: textWith('lease ended') } },
		],
		['whose outcome is uncertain', async () => await endAs(workbench, ['d1'], { outcome: 'outcomeUncertain', reason: 'timed out' }), RECONCILE_FIRST, { reason: 'outcome_uncertain', version: 2, outcome: { reason: 'timed out' } }],
	])('%s', async (_what, arrange, output, expected) => {
		await arrange();
		const publication = await workbench.publish(recovering());
		const executions = await publication.executions();
		const other = output === READY_TO_RUN ? RECONCILE_FIRST : READY_TO_RUN;
		expect([taken(executions, output), taken(executions, other)]).toEqual([[expect.objectContaining({ status: 'new', handle: anyText, leaseExpiresAt: anyText })], []]);
		expect(taken(executions, output)[0]).toMatchObject(expected);
		expect([executions[0].ran('Action'), executions[0].ran('Look')]).toEqual([output === READY_TO_RUN, output === RECONCILE_FIRST]);
		expect(executions[0].outputOf(TRIGGER, output)[0]).toMatchObject({ id: 'd1' });
	});

	test('to be looked up, also where no delivery was stored: then the item is the claim alone', async () => {
		await endAs(workbench, ['d1'], { outcome: 'outcomeUncertain' }, { options: { storePayload: 'never' } });
		const [execution] = await (await workbench.publish(recovering())).executions();
		expect(execution.outputOf(TRIGGER, RECONCILE_FIRST)).toEqual([{ claim: expect.objectContaining({ deliveryId: 'd1', payloadComplete: false }) as unknown }]);
	});
});

test('nothing else is taken: other jobs and senders, work in progress, what is not due, done, for a person, or a test', async () => {
	await receive(workbench, ['other action'], { action: 'mail' });
	await receive(workbench, ['action in capitals'], { action: 'Lead' });
	await receive(workbench, ['other source'], { source: 'bank' });
	await leaveBehind(workbench, ['in progress']);
	await endAs(workbench, ['not due'], { outcome: 'retryableFailure' });
	await endAs(workbench, ['done'], { outcome: 'completed' });
	await endAs(workbench, ['for a person'], { outcome: 'needsReview' });
	await endAs(workbench, ['without its delivery'], { outcome: 'retryableFailure' }, { options: { storePayload: 'never' } });
	await workbench.change('without its delivery', RETRY_DUE);
	await workbench.run(guarded(claimNode({ operation: 'receive' })), { items: deliveries('a test'), mode: 'manual' });
	const before = await workbench.rows();
	const publication = await workbench.publish(recovering());
	expect([await publication.executions(), publication.failures]).toEqual([[], []]);
	expect(await workbench.rows()).toEqual(before);
});

test('only the kinds that were chosen', async () => {
	await receive(workbench, ['received']);
	await endAs(workbench, ['uncertain'], { outcome: 'outcomeUncertain' });
	const executions = await (await workbench.publish(recovering(triggerNode({ recover: ['uncertainOutcomes'] })))).executions();
	expect([taken(executions), taken(executions, RECONCILE_FIRST).map(({ deliveryId }) => deliveryId)]).toEqual([[], ['uncertain']]);
});

test('claims of a provider are found by its preset', async () => {
	const item = { json: { headers: { 'x-github-delivery': 'gh-1' }, body: { repository: { full_name: 'acme/shop' } } } };
	await workbench.run(guarded(claimNode({ operation: 'receive', provider: 'github' })), { items: [item] });
	const executions = await (await workbench.publish(recovering(triggerNode({ provider: 'github' })))).executions();
	expect(taken(executions)).toMatchObject([{ source: 'github', deliveryId: 'gh-1', account: 'acme/shop' }]);
});

test('at most Limit claims at a poll, oldest first, under a lease of the length that was asked for', async () => {
	await receive(workbench, ['d1', 'd2', 'd3']);
	for (const [id, hours] of [['d2', 3], ['d3', 2], ['d1', 1]]) await workbench.change(String(id), `first_seen_at = now() - interval '${hours} hours'`);
	const publication = await workbench.publish(recovering(triggerNode({ limit: 2, leaseSeconds: 7200 })));
	expect(taken(await publication.executions()).map(({ deliveryId }) => deliveryId)).toEqual(['d2', 'd3']);
	const [{ long_lease: longLease }] = await workbench.database.query(`SELECT bool_and(lease_expires_at BETWEEN now() + interval '119 minutes' AND now() + interval '2 hours') AS long_lease FROM idempotent_claims WHERE state = 'processing'`);
	expect(longLease).toBe(true);
	expect(taken(await publication.poll()).map(({ deliveryId }) => deliveryId)).toEqual(['d1']);
});

test('a failing execution spoils no other, and its claim goes its way: to be reconciled once its lease is over', async () => {
	await receive(workbench, ['good', 'bad', 'better']);
	const row = { Action: { type: 'test.failsForBad' }, Complete: completeNode() };
	const publication = await workbench.publish(recovering(triggerNode(), row));
	expect((await publication.executions()).map(({ status }) => status).sort()).toEqual(['error', 'success', 'success']);
	expect([await stateOf('good'), await stateOf('bad'), await stateOf('better')]).toEqual(['completed', 'processing', 'completed']);
	expect(await publication.poll()).toEqual([]);
	await workbench.change('bad', LEASE_OVER);
	const executions = await publication.poll();
	expect(taken(executions, RECONCILE_FIRST)).toMatchObject([{ deliveryId: 'bad', version: 3, attempt: 1 }]);
	expect(executions[0].ran('Action')).toBe(false);
});

test('attempts count, each waits for its time, twice as long as the one before; after the last a person must decide', async () => {
	await receive(workbench, ['d1'], { options: { maxAttempts: 3 } });
	const publication = await workbench.publish(recovering(triggerNode(), { Complete: completeNode({ outcome: 'retryableFailure', retryAfterSeconds: 600, reason: 'down' }) }));
	const waits = async () => {
		const [row] = await workbench.database.query<{ minutes: number }>('SELECT round(extract(epoch FROM retry_at - now()) / 60)::int AS minutes FROM idempotent_claims');
		return row.minutes;
	};
	expect(taken(await publication.executions())).toMatchObject([{ attempt: 1, reason: 'received' }]);
	expect([await stateOf('d1'), await waits()]).toEqual(['retryable_failure', 10]);
	expect(await publication.poll()).toEqual([]);
	await workbench.change('d1', RETRY_DUE);
	expect(taken(await publication.poll())).toMatchObject([{ attempt: 2, reason: 'retry' }]);
	expect([await stateOf('d1'), await waits()]).toEqual(['retryable_failure', 20]);
	await workbench.change('d1', RETRY_DUE);
	expect(taken(await publication.poll())).toMatchObject([{ attempt: 3, reason: 'retry' }]);
	expect(await stateOf('d1')).toBe('needs_review');
	expect(await publication.poll()).toEqual([]);
});

test('work that was left behind with its last attempt goes before a person, and starts nothing', async () => {
	await leaveBehind(workbench, ['d1'], { options: { whenLeaseExpires: 'takeOver', maxAttempts: 1 } });
	await workbench.change('d1', LEASE_OVER);
	const publication = await workbench.publish(recovering());
	expect([await publication.executions(), publication.failures]).toEqual([[], []]);
	expect(await workbench.row('d1')).toMatchObject({ state: 'needs_review', version: 1 });
});

test('what a reconciler finds out decides: done, to be run again at once, or for a person', async () => {
	await endAs(workbench, ['done', 'not there', 'unclear'], { outcome: 'outcomeUncertain' });
	const workflow = recovering();
	workflow.nodes.Complete = completeNode({
		outcome: '={{ ({ done: "completed", "not there": "retryableFailure", unclear: "needsReview" })[$json.id] }}',
		outcomeReference: 'lead-1',
		reason: 'looked up',
		retryAfterSeconds: 0,
	});
	workflow.lines.push('Look -> Complete');
	const publication = await workbench.publish(workflow);
	expect((await publication.executions()).map(({ status }) => status)).toEqual(['success', 'success', 'success']);
	expect([await stateOf('done'), await stateOf('not there'), await stateOf('unclear')]).toEqual(['completed', 'retryable_failure', 'needs_review']);
	expect(taken(await publication.poll())).toMatchObject([{ deliveryId: 'not there', reason: 'retry', attempt: 2 }]);
	expect(await publication.poll()).toEqual([]);
});

test('ten workflows with the same trigger share nothing, leave nothing, and each poll finds work while there is some', async () => {
	const ids = Array.from({ length: 100 }, (_, index) => `d${index}`);
	await receive(workbench, ids);
	const pollers = Array.from({ length: 10 }, (_, index) => recovering(triggerNode({ limit: 5 }), undefined, `recovery-${index}`));
	const publications = await Promise.all(pollers.map(async (workflow) => await workbench.publish(workflow)));
	const first = await Promise.all(publications.map(async (publication) => taken(await publication.executions())));
	const second = await Promise.all(publications.map(async (publication) => taken(await publication.poll())));
	const all = [...first, ...second].flat();
	expect(all.map(({ deliveryId }) => deliveryId).sort()).toEqual([...ids].sort());
	expect(new Set(all.map(({ handle }) => handle)).size).toBe(100);
	expect([...first, ...second].map(({ length }) => length)).toEqual(Array.from({ length: 20 }, () => 5));
});

describe('a claim that cannot be handed on', () => {
	test('because its delivery has the Result Field itself: a person must decide, its neighbours run, and nothing is lost', async () => {
		const items = [{ json: { id: 'd1' } }, { json: { id: 'd2', claim: 'for damages' } }, { json: { id: 'd3' } }];
		await workbench.run(guarded(claimNode({ operation: 'receive', options: { resultField: 'mine' } })), { items });
		const publication = await workbench.publish(recovering());
		expect(taken(await publication.executions()).map(({ deliveryId }) => deliveryId)).toEqual(['d1', 'd3']);
		expect(await workbench.row('d2')).toMatchObject({ state: 'needs_review', outcome_reason: textWith('choose another Result Field'), payload: { id: 'd2', claim: 'for damages' } });
	});

	test('with another Result Field it is', async () => {
		await workbench.run(guarded(claimNode({ operation: 'receive', options: { resultField: 'mine' } })), { items: [{ json: { id: 'd2', claim: 'for damages' } }] });
		const [execution] = await (await workbench.publish(recovering(triggerNode({ options: { resultField: 'recovered' } })))).executions();
		expect(execution.outputOf(TRIGGER)).toEqual([{ id: 'd2', claim: 'for damages', recovered: expect.objectContaining({ deliveryId: 'd2' }) as unknown }]);
	});

	test('because its delivery was changed into something else by hand: a person must decide, no action runs on it', async () => {
		await receive(workbench, ['d1', 'd2']);
		await workbench.change('d1', `payload = '[1]'`);
		const publication = await workbench.publish(recovering());
		expect(taken(await publication.executions()).map(({ deliveryId }) => deliveryId)).toEqual(['d2']);
		expect(await workbench.row('d1')).toMatchObject({ state: 'needs_review', outcome_reason: textWith('no JSON object') });
	});

	test('because n8n does not start its execution: the others run, it is due again later, and the failure is seen', async () => {
		await receive(workbench, ['d1', 'd2']);
		await endAs(workbench, ['d3'], { outcome: 'outcomeUncertain' });
		const started: unknown[] = [];
		const publication = await workbench.publish(recovering(), {
			emit: ([ready, reconcile]) => {
				const { id } = [...ready, ...reconcile][0].json;
				if (id !== 'd2') throw new Error('n8n refuses this one');
				started.push(id);
			},
		});
		expect(started).toEqual(['d2']);
		expect(await workbench.row('d1')).toMatchObject({ state: 'retryable_failure', outcome_reason: textWith('refused to start'), attempt: 1 });
		expect((await workbench.row('d1')).retry_at).toBeInstanceOf(Date);
		expect(await workbench.row('d3')).toMatchObject({ state: 'outcome_uncertain', version: 2 });
		expect(publication.failures).toMatchObject([{ message: 'n8n refused to start an execution for 2 of 3 claims', description: textWith('n8n refuses this one') }]);
	});
});

test('unpublished: nothing is taken any more', async () => {
	const publication = await workbench.publish(recovering());
	await receive(workbench, ['d1']);
	await publication.unpublish();
	expect(await publication.poll()).toEqual([]);
	expect(await stateOf('d1')).toBe('received');
});
