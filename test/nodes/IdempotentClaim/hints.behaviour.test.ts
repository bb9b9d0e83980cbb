import { claimNode, completeNode, deliveries, guarded, Workbench } from '../../support/workbench';
import { textLike, textWith } from '../../support/matchers';

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

/** A workflow about which there is nothing to say. */
const complete = () => {
	const workflow = guarded();
	workflow.nodes.Complete = completeNode();
	workflow.lines.push('Action -> Complete');
	return workflow;
};
const hints = async (workflow = complete(), mode: 'manual' | 'webhook' = 'manual') => (await workbench.run(workflow, { mode, items: deliveries('d1') })).hintsOf('Claim');

test('a complete workflow gets no hint', async () => {
	expect(await hints()).toEqual([]);
});

test('no Complete Claim behind a claim', async () => {
	expect(await hints(guarded())).toEqual([textWith('Complete Claim')]);
});

test('a disabled Complete Claim does not count', async () => {
	const workflow = complete();
	workflow.nodes.Complete.disabled = true;
	expect(await hints(workflow)).toEqual([textWith('Complete Claim')]);
});

test.each(['receive', 'deduplicate'])('%s needs none', async (operation) => {
	expect(await hints(guarded(claimNode({ operation })))).toEqual([]);
});

test('a Webhook node that answers immediately', async () => {
	const workflow = complete();
	workflow.nodes.Start.parameters = { responseMode: 'onReceived' };
	expect(await hints(workflow)).toEqual([textLike(/Webhook.*Immediately/)]);
});

test('a Webhook node that answers with the last item, and duplicates that end here', async () => {
	const workflow = complete();
	workflow.nodes.Start.parameters = { responseMode: 'lastNode' };
	expect(await hints(workflow)).toEqual([]);
	await workbench.clear();
	workflow.lines = workflow.lines.filter((line) => !line.startsWith('Claim[1]'));
	expect(await hints(workflow)).toEqual([textLike(/Known Duplicate is not connected.*500/)]);
	await workbench.clear();
	workflow.nodes.Start.parameters = { responseMode: 'lastNode', responseData: 'noData' };
	expect(await hints(workflow)).toEqual([]);
});

test('a duplicate of a test claim', async () => {
	await hints();
	expect(await hints()).toEqual([textLike(/new ID.*Always New/)]);
});

test('an error says what is wrong where the person looks', async () => {
	const workflow = complete();
	workflow.nodes.Claim = claimNode({ source: ' spaced ' });
	expect(await hints(workflow)).toEqual([textLike(/source.*white space/)]);
});

test('a Delivery ID that is the same for every delivery', async () => {
	const workflow = complete();
	workflow.nodes.Claim = claimNode({ deliveryId: 'order-1' });
	expect(await hints(workflow)).toEqual([textLike(/Delivery ID is fixed text/)]);
});

test('production runs are not for reading hints', async () => {
	expect(await hints(guarded(), 'webhook')).toEqual([]);
});
