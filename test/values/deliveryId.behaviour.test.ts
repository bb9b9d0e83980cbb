import { randomBytes } from 'node:crypto';
import type { IDataObject, INodeExecutionData } from 'n8n-workflow';
import { textWith } from '../support/matchers';
import { claimNode, claimsOf, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, Workbench } from '../support/workbench';

/** What senders and expressions give as an identity, through the node: each is a key of its own, or is refused; nothing is cut or mended. */

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

/** Characters that do not compress: repeated ones would hide the limit of the index. */
const random = (characters: number) => randomBytes(Math.ceil(characters / 2)).toString('hex').slice(0, characters);
const randomEmoji = (count: number) => Array.from(randomBytes(count), (byte) => String.fromCodePoint(0x1f300 + byte)).join('');

async function claim(parameters: IDataObject, items: INodeExecutionData[], workflowId = 'workflow-under-test') {
	const run = await workbench.run({ ...guarded(claimNode(parameters)), id: workflowId }, { items });
	return { run, fresh: claimsOf(run, 'Claim', NEW_CLAIM), known: claimsOf(run, 'Claim', KNOWN_DUPLICATE), refused: claimsOf(run, 'Claim', OPERATIONAL_ERROR) };
}

const items = (...json: object[]): INodeExecutionData[] => json.map((one) => ({ json: one as IDataObject }));

async function storedIds(): Promise<unknown[]> {
	return (await workbench.rows()).map((row) => row.delivery_id);
}

describe('the length of a delivery ID', () => {
	test.each([255, 511, 512])('%i random characters are stored whole, and found again', async (characters) => {
		const id = random(characters);
		expect((await claim({}, deliveries(id))).fresh).toMatchObject([{ deliveryId: id }]);
		expect((await claim({}, deliveries(id))).known).toMatchObject([{ deliveryId: id }]);
		expect(await storedIds()).toEqual([id]);
	});

	test.each<[string, string]>([
		...[513, 1024, 2600, 2690, 8191, 1_000_000].map((characters): [string, string] => [`${characters} random characters`, random(characters)]),
		['700 four-byte emoji', randomEmoji(700)],
		['129 four-byte emoji (516 bytes)', randomEmoji(129)],
	])('%s are refused before the database sees them, and never cut', async (_what, id) => {
		const { run, fresh, refused } = await claim({}, deliveries(id, 'short'));
		expect(refused).toMatchObject([{ responseCode: 400, deliveryId: null, error: { kind: 'invalid_delivery_id', message: textWith('longer than 512 bytes'), sqlState: null } }]);
		expect(run.itemsOf('Claim', OPERATIONAL_ERROR)).toMatchObject([{ json: { id }, pairedItem: { item: 0 } }]);
		expect(fresh).toMatchObject([{ deliveryId: 'short' }]);
		expect(await storedIds()).toEqual(['short']);
	});

	test('two of the longest that differ only in the last character are two deliveries', async () => {
		const stem = random(511);
		const { fresh } = await claim({}, deliveries(`${stem}a`, `${stem}b`));
		expect(fresh.map(({ deliveryId }) => deliveryId)).toEqual([`${stem}a`, `${stem}b`]);
		expect(new Set(fresh.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(2);
	});
});

test.each<[string, string[]]>([
	['composed and decomposed letters', ['Caf\u00e9', 'Cafe\u0301', 'Cafe']],
	['zero-width characters, a byte order mark, a soft hyphen', ['ab', 'a\u200bb', 'a\u200db', 'a\ufeffb', 'a\u00adb', '\u200bab', 'ab\u200b']],
	['a space and a no-break space', ['a b', 'a\u00a0b', 'a\u2003b', 'a  b']],
	['dotted and dotless i, whatever a language makes of them in lower case', ['i', 'I', '\u0131', '\u0130', 'i\u0307']],
	['full-width and other digits', ['1', '\uff11', '\u0661', '\u00b9', '1.0', '01', '+1', '1e0']],
	['separators that people join with', ['a:b', 'a|b', 'a/b', 'a\\b', 'a%b', 'a,b', 'a\\:b', 'a%3Ab']],
	['texts that look like values', ['true', 'false', '0', '-0', '[]', '{}', 'NULL', 'Undefined', 'nan', '[object object]', 'null ptr']],
])('IDs that only look alike are different deliveries: %s', async (_what, ids) => {
	const { fresh } = await claim({}, deliveries(...ids));
	expect(fresh.map(({ deliveryId }) => deliveryId)).toEqual(ids);
	// Each finds its own record again, and the table holds what was sent, character by character.
	const { known } = await claim({}, deliveries(...ids));
	expect(known.map(({ deliveryId }) => deliveryId)).toEqual(ids);
	expect(new Set(await storedIds())).toEqual(new Set(ids));
});

test.each<[string, string]>([
	['a line break as Windows writes it', 'evt\r\n1'],
	['a line break at the end', 'evt1\r\n'],
	['a byte order mark at the start, which is white space there', '\ufeffevt1'],
	['a tab', 'evt\t1'],
	['a line separator at the end', 'evt1\u2028'],
])('%s is refused, not removed', async (_what, id) => {
	const { refused, fresh } = await claim({}, deliveries(id, 'evt1'));
	expect(refused).toMatchObject([{ responseCode: 400, error: { kind: 'invalid_delivery_id' } }]);
	expect(fresh).toMatchObject([{ deliveryId: 'evt1' }]);
	expect(await storedIds()).toEqual(['evt1']);
});

describe('NUL in the second of three items', () => {
	test.each(['\0ab', 'a\0b', 'ab\0'])('of the delivery ID (%j): the others are claimed, and it is not stripped', async (id) => {
		const { run, fresh, refused } = await claim({}, deliveries('first', id, 'ab'));
		expect(fresh.map(({ deliveryId }) => deliveryId)).toEqual(['first', 'ab']);
		expect(run.itemsOf('Claim', NEW_CLAIM).map(({ pairedItem }) => pairedItem)).toEqual([{ item: 0 }, { item: 2 }]);
		expect(refused).toMatchObject([{ responseCode: 400, error: { kind: 'invalid_delivery_id', message: textWith('control character') } }]);
		expect(run.itemsOf('Claim', OPERATIONAL_ERROR).map(({ pairedItem }) => pairedItem)).toEqual([{ item: 1 }]);
		expect(await storedIds()).toEqual(['ab', 'first']);
	});

	test.each(['source', 'account', 'action', 'eventType'])('of the %s likewise', async (part) => {
		const inOptions = part === 'account' || part === 'eventType';
		const parameter = { [part]: '={{ $json.part }}' };
		const { fresh, refused } = await claim(inOptions ? { options: parameter } : parameter, items({ id: '1', part: 'x' }, { id: '2', part: 'x\0' }, { id: '3', part: 'x' }));
		expect(fresh.map(({ deliveryId }) => deliveryId)).toEqual(['1', '3']);
		expect(refused).toMatchObject([{ responseCode: 503, error: { kind: 'invalid_setting', sqlState: null } }]);
		expect(await storedIds()).toEqual(['1', '3']);
	});
});

describe.each(['source', 'account', 'action'] as const)('the %s', (part) => {
	const parameter = { [part]: '={{ $json.part }}' };
	const parameters = part === 'account' ? { options: parameter } : parameter;
	const claimParts = async (parts: unknown[]) => await claim(parameters, items(...parts.map((value, index) => ({ id: `d${100 + index}`, part: value }))));

	test('refuses item by item what it may not be', async () => {
		const bad = [null, undefined, ' ', ' shop', 'shop ', 'sh\nop', '\u0000shop', 'sh\u009fop', '\ud83d', 'a\ude00', true, false, 1.5, NaN, Infinity, 2 ** 53, [], ['shop'], {}, 'undefined', 'null', 'NaN', '[object Object]', random(257), randomEmoji(65)];
		const { fresh, refused } = await claimParts(['shop', ...bad, 'shop']);
		expect(refused.map(({ error }) => error?.kind)).toEqual(bad.map(() => 'invalid_setting'));
		expect(fresh).toHaveLength(2);
		expect(await workbench.rows()).toHaveLength(2);
	});

	test('takes as many random bytes as allowed, a whole number as its text, and keeps what looks alike apart', async () => {
		const good = [random(256), randomEmoji(64), 'Caf\u00e9', 'Cafe\u0301', 'SHOP', 'shop', 's%', 's_', "'; --", 7];
		const { fresh } = await claimParts(good);
		expect(fresh.map((claimed) => claimed[part])).toEqual(good.map(String));
		expect((await workbench.rows()).map((row) => row[part])).toEqual(good.map(String));
	});

	test(part === 'source' ? 'may not be empty' : 'may be empty, which is not the same as any text', async () => {
		const { fresh, refused } = await claimParts(['', '-']);
		expect([fresh.length, refused.length]).toEqual(part === 'source' ? [1, 1] : [2, 0]);
	});
});

test('parts of an identity are never joined: no separator moves from one into the other', async () => {
	const parameters = { source: '={{ $json.s }}', action: '={{ $json.a }}', options: { account: '={{ $json.c }}' } };
	const identities = [
		{ s: 'x', id: 'y:z' },
		{ s: 'x:y', id: 'z' },
		{ s: 's', c: 'a:b', a: 'c', id: 'i' },
		{ s: 's', c: 'a', a: 'b:c', id: 'i' },
		{ s: 's', c: '', a: 'x', id: 'i' },
		{ s: 's', c: 'x', a: '', id: 'i' },
		{ s: '1', id: '11' },
		{ s: '11', id: '1' },
		{ s: 'p\\', id: ':q' },
		{ s: 'p', id: '\\:q' },
		{ s: 'p%', id: '%q' },
		{ s: 'p', id: '%%q' },
		{ s: '["a"', id: '"b"]' },
		{ s: '["a","b"]', id: ']' },
	].map((identity) => ({ c: '', a: '', ...identity }));
	const { fresh } = await claim(parameters, items(...identities));
	expect(fresh.map(({ source, account, action, deliveryId }) => ({ s: source, c: account, a: action, id: deliveryId }))).toEqual(identities);
	expect(new Set(fresh.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(identities.length);
	expect(await workbench.rows()).toHaveLength(identities.length);
});

describe('whose claims they are', () => {
	test('two workflows act once each on the same delivery, as long as nobody says that they share', async () => {
		const byDefault = { action: '={{ $workflow.id }}' };
		expect((await claim(byDefault, deliveries('1001'), 'workflow-a')).fresh).toMatchObject([{ action: 'workflow-a' }]);
		expect((await claim(byDefault, deliveries('1001'), 'workflow-b')).fresh).toMatchObject([{ action: 'workflow-b' }]);
		expect((await claim(byDefault, deliveries('1001'), 'workflow-a')).known).toHaveLength(1);
	});

	test('with one action they share the claim', async () => {
		const shared = { action: 'inbox' };
		expect((await claim(shared, deliveries('1001'), 'workflow-a')).fresh).toHaveLength(1);
		expect((await claim(shared, deliveries('1001'), 'workflow-b')).known).toMatchObject([{ owner: { workflowId: 'workflow-a' } }]);
	});

	test.each([`={{ (() => { throw new Error('tell nobody') })() }}`, '={{ $json.shop.name }}', '={{ $("Nowhere").item.json.name }}', '='])('a source from the expression %s is refused', async (source) => {
		const { refused } = await claim({ source }, deliveries('1001'));
		expect(refused).toMatchObject([{ responseCode: 503, source: null, error: { kind: 'invalid_setting' } }]);
		expect(JSON.stringify(refused)).not.toContain('tell nobody');
		expect(await workbench.rows()).toEqual([]);
	});
});

describe('an ID that is put together needs every part', () => {
	const present = { id: 1, shop: 'north', order: '77' };

	test.each<[string, string, string]>([
		['a template', '={{ $json.shop }}:{{ $json.order }}', 'north:77'],
		['a template with a fixed start', '=order_{{ $json.order }}', 'order_77'],
		['a sum', `={{ $json.shop + ':' + $json.order }}`, 'north:77'],
		['a template literal', '={{ `${$json.shop}:${$json.order}` }}', 'north:77'],
		['a list that is joined', `={{ [$json.shop, $json.order].join(':') }}`, 'north:77'],
	])('%s: all there is a claim, one missing is no ID', async (_what, deliveryId, id) => {
		const nothing = { other: 'x' };
		const { fresh, refused } = await claim({ deliveryId }, items(present, nothing, { ...nothing, second: true }, present));
		expect(fresh).toMatchObject([{ deliveryId: id }]);
		// Without this, the second delivery that lacks its parts would be a duplicate of the first, and lost.
		expect(refused).toMatchObject([
			{ responseCode: 400, error: { kind: 'missing_delivery_id', message: textWith('A part of the delivery ID is missing') } },
			{ responseCode: 400, error: { kind: 'missing_delivery_id' } },
		]);
		expect(await storedIds()).toEqual([id]);
	});

	test.each<[string, object]>([
		['undefined', { shop: 'north' }],
		['null', { shop: 'north', order: null }],
		['empty', { shop: 'north', order: '' }],
		['white space', { shop: 'north', order: ' ' }],
		['an object', { shop: 'north', order: {} }],
		['a list', { shop: 'north', order: [] }],
		['NaN', { shop: 'north', order: NaN }],
		['the first part', { order: '77' }],
	])('one part of a template is missing: %s', async (_what, json) => {
		const { refused } = await claim({ deliveryId: '={{ $json.shop }}:{{ $json.order }}' }, items(json));
		expect(refused).toMatchObject([{ error: { kind: 'missing_delivery_id' } }]);
		expect(await workbench.rows()).toEqual([]);
	});

	test('zero and false are there', async () => {
		const { fresh } = await claim({ deliveryId: '={{ $json.shop }}:{{ $json.order }}' }, items({ shop: 0, order: false }));
		expect(fresh).toMatchObject([{ deliveryId: '0:false' }]);
	});

	test('words of an ID that comes as it is are no parts', async () => {
		const ids = ['null-pointer', 'a:undefined', 'evt_NaN', ':', '-'];
		const { fresh } = await claim({}, deliveries(...ids));
		expect(fresh.map(({ deliveryId }) => deliveryId)).toEqual(ids);
	});

	test('a preset\'s override likewise', async () => {
		const parameters = { provider: 'github', options: { deliveryIdOverride: '={{ $json.repository }}/{{ $json.run }}' } };
		const { fresh, refused } = await claim(parameters, items({ repository: 'r', run: 1 }, { repository: 'r' }));
		expect(fresh).toMatchObject([{ deliveryId: 'r/1' }]);
		expect(refused).toMatchObject([{ error: { kind: 'missing_delivery_id' } }]);
	});
});

describe('an ID that is different at every execution', () => {
	test.each(['Date.now()', 'new Date().toISOString()', 'DateTime.now().toMillis()', 'DateTime.utc().toISO()', 'Math.random()', 'crypto.randomUUID()'])('%s is refused', async (expression) => {
		const { refused } = await claim({ deliveryId: `={{ $json.id + '-' + ${expression} }}` }, deliveries('d1'));
		expect(refused).toMatchObject([{ error: { kind: 'invalid_setting', message: textWith('different at every execution') } }]);
		expect(await workbench.rows()).toEqual([]);
	});

	test.each([`new Date($json.at).toISOString()`, `DateTime.fromISO($json.at).toMillis()`, `$json.at + 'Date.now()'`])('%s of what the sender sent is not', async (expression) => {
		const { fresh } = await claim({ deliveryId: `={{ ${expression} }}` }, items({ at: '2026-01-02T03:04:05.000Z' }));
		expect(fresh).toHaveLength(1);
	});

	// From a field that an earlier node made, the expression does not show it.
	test.each(['41', '41-Webhook', 'run:41'])('%s in execution 41: who tries it out is told', async (id) => {
		const run = await workbench.run(guarded(), { items: deliveries(id), executionId: '41', mode: 'manual' });
		expect(run.hintsOf('Claim').join()).toContain("this execution's ID (41)");
	});

	test.each(['411', 'a41', 'evt_1'])('%s in execution 41: no such hint', async (id) => {
		const run = await workbench.run(guarded(), { items: deliveries(id), executionId: '41', mode: 'manual' });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toHaveLength(1);
		expect(run.hintsOf('Claim').join()).not.toContain("this execution's ID");
	});
});
