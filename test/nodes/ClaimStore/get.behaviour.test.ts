import type { IDataObject } from 'n8n-workflow';
import { anyText } from '../../support/matchers';
import { claimHandles, settle } from '../../support/settling';
import { LEASE_OVER } from '../../support/timePassed';
import { claimNode, claimsOf, deliveries, guarded, KNOWN_DUPLICATE, type Workbench } from '../../support/workbench';
import { ask, bring, desk, look, openDesk } from './support/desk';

let workbench: Workbench;
beforeAll(async () => (workbench = await openDesk()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const KEYS = [
	...['deliveryId', 'source', 'account', 'action', 'environment', 'state', 'version', 'attempt', 'maxAttempts', 'claimReason', 'operation', 'eventType'],
	...['leaseExpiresAt', 'leaseExpired', 'leaseSeconds', 'whenLeaseExpires', 'retryAt', 'firstSeenAt', 'updatedAt', 'purgeAfter', 'retentionDays'],
	...['ownerInstanceId', 'ownerWorkflowId', 'ownerExecutionId', 'ownerNodeId', 'ownerNodeName', 'resolvedBy'],
	...['outcomeReference', 'outcomeResult', 'outcomeReason', 'outcomeRecordedAt', 'idempotencyKey', 'fingerprint', 'handle', 'payloadComplete', 'payload', 'history'],
];

test.each(['received', 'processing', 'completed', 'retryable_failure', 'outcome_uncertain', 'needs_review'])('a claim in %s: every key is there, in the same order', async (state) => {
	await bring(workbench, 'd1', state);
	const item = await look(workbench, 'd1');
	expect(Object.keys(item)).toEqual(KEYS);
	expect(item).toMatchObject({ deliveryId: 'd1', source: 'shop', account: '', action: 'lead', environment: 'live', state });
	expect(Object.values(item)).not.toContain(undefined);
});

test('a record says what its row says', async () => {
	const [handle] = await claimHandles(workbench, ['d1'], { options: { account: 'acme', eventType: 'order.paid', leaseSeconds: 60, maxAttempts: 3, whenLeaseExpires: 'takeOver' } }, '77');
	const processing = await look(workbench, 'd1', { account: 'acme' });
	expect(processing).toMatchObject({
		...{ version: 1, attempt: 1, maxAttempts: 3, claimReason: 'first_delivery', operation: 'claim', eventType: 'order.paid' },
		...{ leaseExpiresAt: anyText, leaseExpired: false, leaseSeconds: 60, whenLeaseExpires: 'takeOver', retryAt: null, purgeAfter: null, retentionDays: 30 },
		...{ ownerWorkflowId: 'workflow-under-test', ownerExecutionId: '77', ownerNodeName: 'Claim', resolvedBy: null, outcomeReference: null, outcomeRecordedAt: null },
		...{ payloadComplete: true, payload: { id: 'd1' }, history: [{ state: 'processing', version: 1, attempt: 1, execution: '77', by: 'Claim', reason: 'first_delivery' }] },
	});
	await settle(workbench, [handle], { outcome: 'completed', outcomeReference: 'lead-7', options: { result: '={{ { name: "Ada" } }}' } });
	const completed = await look(workbench, 'd1', { account: 'acme' });
	expect(completed).toMatchObject({ state: 'completed', leaseExpiresAt: null, purgeAfter: anyText, outcomeReference: 'lead-7', outcomeResult: { name: 'Ada' }, outcomeReason: null, outcomeRecordedAt: anyText, payload: null });
	expect((completed.history as IDataObject[]).map(({ state }) => state)).toEqual(['processing', 'completed']);
	const redelivered = await workbench.run(guarded(claimNode({ options: { account: 'acme' } })), { items: deliveries('d1') });
	expect(completed.idempotencyKey).toBe(claimsOf(redelivered, 'Claim', KNOWN_DUPLICATE)[0].idempotencyKey);
});

test('the bare owner token is in no item', async () => {
	await bring(workbench, 'd1', 'processing');
	const { owner_token: token } = await workbench.row('d1');
	expect(JSON.stringify(await look(workbench, 'd1'))).not.toContain(String(token));
});

test('a lease that is over is said to be', async () => {
	await bring(workbench, 'd1', 'processing');
	await workbench.change('d1', LEASE_OVER);
	expect((await look(workbench, 'd1')).leaseExpired).toBe(true);
});

test('by a handle: that of an owner, of a record, and of an owner who was replaced', async () => {
	const [handle] = await claimHandles(workbench, ['d1']);
	const first = await look(workbench, 'd1');
	await settle(workbench, [handle], { outcome: 'needsReview' });
	for (const one of [handle, first.handle as string]) {
		expect(await ask(workbench, { operation: 'get', getBy: 'handle', handle: one })).toMatchObject([{ deliveryId: 'd1', state: 'needs_review' }]);
	}
});

test('a whole number is its text, as in Idempotent Claim', async () => {
	await workbench.run(guarded(claimNode({ operation: 'receive' })), { items: deliveries(42) });
	expect(await look(workbench, '={{ 42 }}')).toMatchObject({ deliveryId: '42' });
});

test.each<[string, IDataObject]>([
	['another delivery ID', { deliveryId: 'd2' }],
	['another source', { source: 'Shop' }],
	['another account', { account: 'acme' }],
	['another action', { action: '' }],
	['another environment', { environment: 'test' }],
])('%s gives no item, and nothing goes on', async (_what, parameters) => {
	await bring(workbench, 'd1', 'received');
	const run = await workbench.run(desk({ operation: 'get', source: 'shop', deliveryId: 'd1', action: 'lead', ...parameters }));
	expect(run.status).toBe('success');
	expect(run.outputOf('Store')).toEqual([]);
	expect(run.ran('Next')).toBe(false);
});

test('Include Payload off leaves it out', async () => {
	await bring(workbench, 'd1', 'received');
	expect(await look(workbench, 'd1', { includePayload: false })).toMatchObject({ payload: null, payloadComplete: true });
});

test('each item is looked up by itself and paired with its own', async () => {
	await bring(workbench, 'd1', 'received');
	await bring(workbench, 'd3', 'received');
	const run = await workbench.run(desk({ operation: 'get', source: 'shop', deliveryId: '={{ $json.id }}', action: 'lead' }), { items: deliveries('d3', 'd2', 'd1') });
	expect(run.itemsOf('Store').map(({ json, pairedItem }) => [json.deliveryId, pairedItem])).toEqual([
		['d3', { item: 0 }],
		['d1', { item: 2 }],
	]);
});

test('in an empty database there is no claim, and no error', async () => {
	const fresh = await openDesk();
	expect(await ask(fresh, { operation: 'get', source: 'shop', deliveryId: 'd1' })).toEqual([]);
	await fresh.close();
});
