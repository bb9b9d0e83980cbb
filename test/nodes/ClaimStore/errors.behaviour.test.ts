import type { NodeOperationError } from 'n8n-workflow';
import { freePort } from '../../support/freePort';
import { deliveries, type Workbench } from '../../support/workbench';
import { bring, desk, openDesk } from './support/desk';

/** Errors as n8n's own nodes give them. */

let workbench: Workbench;
beforeAll(async () => (workbench = await openDesk()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const PASSWORD = 'pa55-Word+Se~cret';
const byId = { operation: 'get', source: 'shop', deliveryId: '={{ $json.id }}', action: 'lead' };

test('the execution fails with what is wrong, what to do, and which item it was', async () => {
	await bring(workbench, 'd1', 'received');
	const run = await workbench.run(desk(byId), { items: deliveries('d1', null) });
	expect(run.status).toBe('error');
	expect(run.error).toMatchObject({ message: 'The delivery ID is missing: it is null', description: expect.stringContaining('Check the expression for the delivery ID') as string, context: { itemIndex: 1 } });
	expect(run.ran('Next')).toBe(false);
});

test.each(['continueRegularOutput', 'continueErrorOutput'] as const)('On Error %s: the item that fails is an error item that says what to do, the others are answered', async (onError) => {
	await bring(workbench, 'd1', 'received');
	const run = await workbench.run(desk(byId, { onError }), { items: deliveries(null, 'd1') });
	expect(run.status).toBe('success');
	const items = [...run.itemsOf('Store', 0), ...run.itemsOf('Store', 1)];
	expect(items).toContainEqual(expect.objectContaining({ json: expect.objectContaining({ error: expect.stringMatching(/^The delivery ID is missing: it is null\. Check the expression for the delivery ID/) as string }) as unknown, pairedItem: { item: 0 } }));
	expect(run.outputOf('Store', 0)).toContainEqual(expect.objectContaining({ deliveryId: 'd1' }));
	expect(run.itemsOf('Store', 1)).toHaveLength(onError === 'continueErrorOutput' ? 1 : 0);
});

test.each(['get', 'getMany', 'resolve', 'summarize', 'purge'])('%s on a server that cannot be reached', async (operation) => {
	const handle = 'claim1.' + Buffer.from(JSON.stringify(['d1', 'shop', '', 'lead', 'live', 'token', 1, 'needs_review'])).toString('base64url');
	const store = workbench.credential({ port: await freePort(), password: PASSWORD, timeoutMs: 500 });
	const run = await workbench.run(desk({ ...byId, operation, handle, decidedBy: 'Ada', reason: 'because' }), { items: deliveries('d1'), credentials: { store } });
	expect(run.error).toMatchObject({ message: expect.stringContaining('No connection to PostgreSQL') as string, description: expect.stringContaining('Check that the server is running') as string });
	expect(run.everything()).not.toContain(PASSWORD);
});

test.each(['get', 'summarize', 'check'])('%s without a credential that can be read: said in plain words, no secret', async (operation) => {
	const run = await workbench.run(desk({ ...byId, operation }), { items: deliveries('d1'), credentials: { store: 'encrypted with another key' } });
	expect(run.error?.message).toBe('n8n could not give this node its Claim Store credential');
});

test('a wrong password is in no item and no error', async () => {
	for (const operation of ['getMany', 'check']) {
		const store = workbench.credential({ user: 'nobody', password: PASSWORD });
		const run = await workbench.run(desk({ operation }, { onError: 'continueRegularOutput' }), { credentials: { store } });
		expect(JSON.stringify(run.outputOf('Store'))).toContain('refused the login');
		expect(run.everything()).not.toContain(PASSWORD);
	}
});

test('an expression that fails is not quoted: it may hold a payload', async () => {
	const run = await workbench.run(desk({ ...byId, deliveryId: `={{ $('No such node').item.json["private words"] }}` }), { items: deliveries('d1') });
	expect(run.error).toMatchObject({ message: 'The expression of Delivery ID failed for this item', messages: [] });
	// n8n keeps the node with its parameters beside the error; the words of the error are ours.
	expect(JSON.stringify([run.error?.message, run.error?.stack, (run.error as NodeOperationError).description])).not.toContain('private words');
});

test('no input item: nothing is asked, and nothing goes on', async () => {
	const run = await workbench.run(desk({ operation: 'getMany' }), { items: [] });
	expect(run.ran('Next')).toBe(false);
});
