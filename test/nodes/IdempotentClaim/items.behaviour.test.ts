import { claimNode, claimsOf, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, Workbench } from '../../support/workbench';
import { anyText, textLike, textWith } from '../../support/matchers';
import { RETRY_DUE } from '../../support/timePassed';

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

test('a first delivery leaves by New Claim with every key of the claim field', async () => {
	const run = await workbench.run(guarded(), { items: deliveries('d1'), executionId: '41' });
	expect(run.outputOf('Claim', NEW_CLAIM)).toEqual([
		{
			id: 'd1',
			claim: {
				status: 'new',
				reason: 'first_delivery',
				responseCode: 200,
				handle: anyText,
				idempotencyKey: textLike(UUID),
				environment: 'live',
				source: 'shop',
				account: '',
				deliveryId: 'd1',
				action: 'lead',
				eventType: null,
				state: 'processing',
				version: 1,
				attempt: 1,
				leaseExpiresAt: textLike(INSTANT),
				retryAt: null,
				firstSeenAt: textLike(INSTANT),
				payloadChanged: null,
				payloadComplete: true,
				outcome: null,
				owner: { workflowId: 'workflow-under-test', executionId: '41', nodeName: 'Claim' },
				error: null,
			},
		},
	]);
	expect(await workbench.row('d1')).toMatchObject({ source: 'shop', action: 'lead', environment: 'live', state: 'processing', version: 1, owner_execution_id: '41', payload: { id: 'd1' }, payload_complete: true });
});

test('the same delivery again is a Known Duplicate that shows whose it is, and hands out no handle', async () => {
	await workbench.run(guarded(), { items: deliveries('d1'), executionId: '1' });
	const run = await workbench.run(guarded(), { items: deliveries('d1'), executionId: '2' });
	expect(run.ran('Action')).toBe(false);
	expect(claimsOf(run, 'Claim', KNOWN_DUPLICATE)).toMatchObject([
		{ status: 'duplicate', reason: 'in_progress', handle: null, state: 'processing', version: 1, owner: { executionId: '1', nodeName: 'Claim' }, error: null },
	]);
	expect(await workbench.rows()).toHaveLength(1);
});

test('the same ID with other details is the same delivery', async () => {
	const first = await workbench.run(guarded(), { items: [{ json: { id: 'd1', amount: 1 } }] });
	const second = await workbench.run(guarded(), { items: [{ json: { id: 'd1', amount: 2 } }] });
	expect(second.outputOf('Claim', KNOWN_DUPLICATE)).toMatchObject([{ amount: 2, claim: { payloadChanged: null } }]);
	expect(claimsOf(second, 'Claim', KNOWN_DUPLICATE)[0].idempotencyKey).toBe(claimsOf(first, 'Claim', NEW_CLAIM)[0].idempotencyKey);
});

test('another ID, source, account or action is another delivery', async () => {
	const variants = [claimNode(), claimNode({ source: 'other-shop' }), claimNode({ options: { account: 'north' } }), claimNode({ action: 'invoice' })];
	for (const variant of variants) {
		expect(claimsOf(await workbench.run(guarded(variant), { items: deliveries('d1') }), 'Claim', NEW_CLAIM)).toHaveLength(1);
	}
	expect(claimsOf(await workbench.run(guarded(), { items: deliveries('D1') }), 'Claim', NEW_CLAIM)).toHaveLength(1);
	expect(await workbench.rows()).toHaveLength(5);
});

test('repeats inside one batch: the first is new, the others are its duplicates, each output in input order', async () => {
	const run = await workbench.run(guarded(), { items: deliveries('b', 'a', 'b', 'c', 'a', 'b') });
	expect(run.outputOf('Claim', NEW_CLAIM).map(({ id }) => id)).toEqual(['b', 'a', 'c']);
	expect(run.outputOf('Claim', KNOWN_DUPLICATE).map(({ id }) => id)).toEqual(['b', 'a', 'b']);
	expect(run.itemsOf('Claim', NEW_CLAIM).map(({ pairedItem }) => pairedItem)).toEqual([{ item: 0 }, { item: 1 }, { item: 3 }]);
	expect(run.itemsOf('Claim', KNOWN_DUPLICATE).map(({ pairedItem }) => pairedItem)).toEqual([{ item: 2 }, { item: 4 }, { item: 5 }]);
	expect((await workbench.rows()).map((row) => [row.delivery_id, row.version])).toEqual([
		['a', 1],
		['b', 1],
		['c', 1],
	]);
});

test('a large batch keeps each verdict with its item', async () => {
	const ids = Array.from({ length: 1500 }, (_, index) => `d${index % 1200}`);
	const run = await workbench.run(guarded(), { items: deliveries(...ids) });
	expect(run.outputOf('Claim', NEW_CLAIM).map(({ id }) => id)).toEqual(ids.slice(0, 1200));
	expect(run.outputOf('Claim', KNOWN_DUPLICATE).map(({ id }) => id)).toEqual(ids.slice(1200));
	for (const { json } of run.itemsOf('Claim', NEW_CLAIM)) expect((json.claim as { deliveryId: string }).deliveryId).toBe(json.id);
});

test('binary data and the whole JSON go through every output', async () => {
	const binary = { file: { data: Buffer.from('hello').toString('base64'), mimeType: 'text/plain', fileName: 'a.txt' } };
	const json = (id: unknown) => ({ id, nested: { list: [1, { deep: true }], nothing: null }, error: { from: 'the sender' }, message: 'hi' });
	const items = ['d1', 'd1', undefined].map((id) => ({ json: json(id) as never, binary }));
	const run = await workbench.run(guarded(), { items });
	for (const output of [NEW_CLAIM, KNOWN_DUPLICATE, OPERATIONAL_ERROR]) {
		const [item] = run.itemsOf('Claim', output);
		expect(item.binary).toMatchObject(binary);
		expect(item.json).toMatchObject({ nested: { list: [1, { deep: true }], nothing: null }, error: { from: 'the sender' }, message: 'hi' });
		expect(item.error).toBeUndefined();
	}
	expect(await workbench.row('d1')).toMatchObject({ payload: json('d1'), payload_complete: false });
});

test('an item with a foreign field "claim" is refused and keeps it', async () => {
	const run = await workbench.run(guarded(), { items: [{ json: { id: 'd1', claim: 'insurance 12' } }] });
	expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ error: { kind: 'invalid_setting', hint: textWith('Result Field') } }]);
	expect(await workbench.rows()).toEqual([]);
});

test('another Result Field leaves a foreign "claim" alone', async () => {
	const run = await workbench.run(guarded(claimNode({ options: { resultField: 'guard' } })), { items: [{ json: { id: 'd1', claim: 'insurance 12' } }] });
	expect(run.outputOf('Claim', NEW_CLAIM)).toMatchObject([{ id: 'd1', claim: 'insurance 12', guard: { status: 'new', deliveryId: 'd1' } }]);
	expect(await workbench.row('d1')).toMatchObject({ payload: { id: 'd1', claim: 'insurance 12' } });
});

test('two guards behind each other, each with its own action, claim for themselves', async () => {
	const workflow = guarded();
	workflow.nodes.Second = claimNode({ action: 'invoice' });
	workflow.lines = ['Start -> Claim', 'Claim -> Second', 'Second -> Action'];
	const run = await workbench.run(workflow, { items: deliveries('d1') });
	expect(run.outputOf('Action')).toMatchObject([{ claim: { status: 'new', action: 'invoice' } }]);
	expect((await workbench.rows()).map((row) => row.action)).toEqual(['invoice', 'lead']);
});

test('authorization and cookie headers go through, and are not stored', async () => {
	const headers = { authorization: 'Bearer abc', cookie: 'session=1', 'user-agent': 'shop/1' };
	const run = await workbench.run(guarded(), { items: [{ json: { id: 'd1', headers, body: { a: 1 } } }] });
	expect(run.outputOf('Action')).toMatchObject([{ headers }]);
	expect(await workbench.row('d1')).toMatchObject({ payload: { id: 'd1', headers: { 'user-agent': 'shop/1' }, body: { a: 1 } } });
	expect(JSON.stringify(await workbench.row('d1'))).not.toContain('Bearer abc');
});

test('a payload with NUL and broken Unicode in it is kept as it came', async () => {
	const json = { id: 'd1', text: 'a\u0000b\ud800c', 'k\u0000': 1 };
	const run = await workbench.run(guarded(), { items: [{ json }, { json: { id: 'd2' } }] });
	expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ payloadComplete: true }, {}]);
	expect((await workbench.row('d1')).payload).toEqual(json);
});

test('Store Payload: Never keeps nothing of the item', async () => {
	await workbench.run(guarded(claimNode({ options: { storePayload: 'never' } })), { items: deliveries('d1') });
	expect(await workbench.row('d1')).toMatchObject({ payload: null, payload_complete: false });
});

test('event type and fingerprint: stored as text and as a hash', async () => {
	const node = claimNode({ options: { eventType: '={{ $json.type }}', fingerprint: '={{ $json.body }}' } });
	await workbench.run(guarded(node), { items: [{ json: { id: 'd1', type: 'order.paid', body: { a: 1, secret: 'tell nobody' } } }] });
	const row = await workbench.row('d1');
	expect(row).toMatchObject({ event_type: 'order.paid', fingerprint: anyText });
	expect(row.fingerprint).not.toContain('tell nobody');

	const again = await workbench.run(guarded(node), { items: [{ json: { id: 'd1', type: 'order.paid', body: { secret: 'tell nobody', a: 1 } } }] });
	expect(claimsOf(again, 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ payloadChanged: false, eventType: 'order.paid' }]);
	const changed = await workbench.run(guarded(node), { items: [{ json: { id: 'd1', type: 'order.paid', body: { a: 2 } } }] });
	expect(claimsOf(changed, 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ payloadChanged: true }]);
});

test('Payload Mismatch: Operational Error refuses a known ID with another content, before anything is written', async () => {
	const node = claimNode({ options: { fingerprint: '={{ $json.body }}', payloadMismatch: 'operationalError' } });
	await workbench.run(guarded(node), { items: [{ json: { id: 'd1', body: 1 } }] });
	await workbench.change('d1', `state = 'retryable_failure', ${RETRY_DUE}, lease_expires_at = NULL`);
	const before = await workbench.row('d1');
	const run = await workbench.run(guarded(node), { items: [{ json: { id: 'd1', body: 2 } }] });
	expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ responseCode: 422, payloadChanged: true, handle: null, error: { kind: 'payload_mismatch' } }]);
	expect(await workbench.row('d1')).toEqual(before);
});

test('a whole number is a delivery ID and means its decimal text', async () => {
	await workbench.run(guarded(), { items: deliveries(42) });
	const run = await workbench.run(guarded(), { items: deliveries('42') });
	expect(claimsOf(run, 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ deliveryId: '42' }]);
});

const MISSING = 'missing_delivery_id';
const INVALID = 'invalid_delivery_id';
test.each<[string, unknown, string]>([
	['null', null, MISSING],
	['empty', '', MISSING],
	['white space', '  \t', MISSING],
	['leading white space', ' d1', INVALID],
	['trailing line feed', 'd1\n', INVALID],
	['a boolean', true, INVALID],
	['a list', ['d1'], INVALID],
	['an object', { id: 'd1' }, INVALID],
	['a fraction', 1.5, INVALID],
	['an integer that was rounded', 9007199254740993, INVALID],
	['NUL', 'd\u00001', INVALID],
	['a control character', 'd\u00071', INVALID],
	['a lone surrogate', 'd\ud8001', INVALID],
	['513 bytes', 'é'.repeat(256) + 'x', INVALID],
	['the text undefined', 'undefined', MISSING],
	['the text null', 'null', MISSING],
	['the text NaN', 'NaN', MISSING],
	['the text [object Object]', '[object Object]', MISSING],
])('a delivery ID that is %s is refused, answered with 400, and claims nothing', async (_name, id, kind) => {
	const run = await workbench.run(guarded(), { items: deliveries(id) });
	const [claim] = claimsOf(run, 'Claim', OPERATIONAL_ERROR);
	expect(claim).toMatchObject({ status: 'error', responseCode: 400, handle: null, idempotencyKey: null, state: null, source: 'shop', deliveryId: null, error: { retryable: false, sqlState: null } });
	expect(claim.error?.kind).toBe(kind);
	expect(await workbench.rows()).toEqual([]);
});

test.each(['d'.repeat(512), 'a b/c?d=é#🙂', "'; DROP TABLE idempotent_claims; --"])('a delivery ID like %s is kept byte for byte', async (id) => {
	await workbench.run(guarded(), { items: deliveries(id) });
	expect((await workbench.rows()).map((row) => row.delivery_id)).toEqual([id]);
});

test('Delivery ID Pattern refuses what does not match', async () => {
	const run = await workbench.run(guarded(claimNode({ options: { deliveryIdPattern: '^evt_[a-z]+$' } })), { items: deliveries('evt_a', 'evt_1') });
	expect(run.outputOf('Claim', NEW_CLAIM)).toMatchObject([{ id: 'evt_a' }]);
	expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ responseCode: 400, error: { kind: INVALID } }]);
});

// The editor leaves braces that are typed into a field in Fixed mode: every delivery would be that same text.
test.each([{ deliveryId: '{{ $json.id }}' }, { source: 'shop-{{ $json.shop }}' }, { action: '{{ $workflow.id }}' }, { options: { account: '{{ $json.account }}' } }])(
	'fixed text that looks like an expression is refused: %j',
	async (parameters) => {
		const run = await workbench.run(guarded(claimNode(parameters)), { items: deliveries('d1') });
		expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ error: { kind: 'invalid_setting', message: textWith('looks like an expression') } }]);
		expect(await workbench.rows()).toEqual([]);
	},
);

test.each(['$execution.id', '$executionId', '$now', '$today', '$runIndex', '$itemIndex'])('a delivery ID made from %s is refused', async (expression) => {
	const run = await workbench.run(guarded(claimNode({ deliveryId: `={{ $json.id + ${expression} }}` })), { items: deliveries('d1') });
	expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ error: { kind: 'invalid_setting' } }]);
	expect(await workbench.rows()).toEqual([]);
});

test.each([
	['source', { source: '={{ "" }}' }],
	['source', { source: ' shop' }],
	['source', { source: 's'.repeat(257) }],
	['action', { action: 'a'.repeat(257) }],
	['account', { options: { account: 'a\u0000' } }],
])('a malformed %s is refused', async (_part, parameters) => {
	const run = await workbench.run(guarded(claimNode(parameters)), { items: deliveries('d1') });
	expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toHaveLength(1);
	expect(await workbench.rows()).toEqual([]);
});

test('receive stores the delivery for later work; deduplicate finishes it at once', async () => {
	const received = await workbench.run(guarded(claimNode({ operation: 'receive' })), { items: deliveries('d1') });
	expect(claimsOf(received, 'Claim', NEW_CLAIM)).toMatchObject([{ reason: 'first_delivery', state: 'received', attempt: 0, version: 1, handle: null, leaseExpiresAt: null }]);
	expect(await workbench.row('d1')).toMatchObject({ state: 'received', operation: 'receive', payload: { id: 'd1' }, lease_expires_at: null });

	const finished = await workbench.run(guarded(claimNode({ operation: 'deduplicate' })), { items: deliveries('d2') });
	expect(claimsOf(finished, 'Claim', NEW_CLAIM)).toMatchObject([{ reason: 'first_delivery', state: 'completed' }]);
	expect(await workbench.row('d2')).toMatchObject({ state: 'completed', payload: null });
	const again = await workbench.run(guarded(claimNode({ operation: 'deduplicate' })), { items: deliveries('d2') });
	expect(claimsOf(again, 'Claim', KNOWN_DUPLICATE)).toMatchObject([{ reason: 'completed', responseCode: 200 }]);
});

test('receive refuses what it could not give back: binary data, more than 1 MiB, Store Payload: Never', async () => {
	const items = [
		{ json: { id: 'd1' }, binary: { file: { data: 'aGk=', mimeType: 'text/plain' } } },
		{ json: { id: 'd2', text: 'x'.repeat(1024 * 1024) } },
	];
	const run = await workbench.run(guarded(claimNode({ operation: 'receive' })), { items });
	expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR).map(({ error }) => error?.kind)).toEqual(['invalid_setting', 'invalid_setting']);
	const never = await workbench.run(guarded(claimNode({ operation: 'receive', options: { storePayload: 'never' } })), { items: deliveries('d3') });
	expect(claimsOf(never, 'Claim', OPERATIONAL_ERROR)).toHaveLength(1);
	expect(await workbench.rows()).toEqual([]);
});

test('claim keeps no payload over 1 MiB and says so', async () => {
	const run = await workbench.run(guarded(), { items: [{ json: { id: 'd1', text: 'x'.repeat(1024 * 1024) } }] });
	expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ payloadComplete: false }]);
	expect(await workbench.row('d1')).toMatchObject({ payload: null, payload_complete: false });
});
