import type { IDataObject, INodeExecutionData } from 'n8n-workflow';
import { fingerprintOf } from '../../store/payload';
import { claimHandles, settling } from '../support/settling';
import { textWith } from '../support/matchers';
import { claimNode, claimsOf, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, RECORDED, Workbench, type Claim } from '../support/workbench';

/**
 * Payload, fingerprint and result: a value that can be kept is given back exactly; one that cannot is that item's
 * Operational Error before anything is written, and never decides on the quiet.
 */

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

function nested(levels: number): unknown {
	let value: unknown = 'core';
	for (let level = 0; level < levels; level++) value = { in: value };
	return value;
}

function cycle(): object {
	const circle: Record<string, unknown> = { name: 'round' };
	circle.again = [circle];
	return circle;
}

function throwing(failure: Error): object {
	return {
		get field() {
			throw failure;
		},
	};
}

const SECRET = 'tell-nobody';

/** What JSON cannot be made of. */
const UNWRITABLE: Array<[string, unknown]> = [
	['a cycle', cycle()],
	['a toJSON that throws', { toJSON: () => { throw new Error(SECRET); } }],
	['a toJSON that throws a RangeError', { toJSON: () => { throw new RangeError(SECRET); } }],
	['a getter that throws', throwing(new Error(SECRET))],
	['a getter that throws a RangeError', { deep: [throwing(new RangeError(SECRET))] }],
];

/** Values that JSON can express, or that n8n itself stores in JSON's way when it stores an item. */
const WRITABLE: Array<[string, unknown]> = [
	['NUL', { text: 'a\u0000b', '\u0000': 1 }],
	['halves of surrogate pairs', { text: '\ud83d and \ude00', '\ud800': [] }],
	['lists in lists', [[], [1, [null, {}]], 'x']],
	['a text, with all that JSON escapes', '"\\/\b\f\n\r\t\u2028\u007f'],
	['an empty text', ''],
	['null', null],
	['numbers at their limits', [0, 1e308, 5e-324, -1.5, Number.MAX_SAFE_INTEGER, 1e21]],
	['booleans', [true, false]],
	['keys that objects have of their own', JSON.parse('{"__proto__":{"polluted":true},"constructor":1,"toString":2,"hasOwnProperty":3}')],
	['keys that are numbers, in their order', { b: 1, 10: 2, 9: 3, '': 4 }],
	['a thousand levels', nested(1000)],
	['a date', new Date(0)],
	['a Buffer', Buffer.from('hello')],
	['minus zero', -0],
];

/** What JSON passes over without a word. */
const LOST: Array<[string, unknown]> = [
	['NaN', NaN],
	['Infinity', -Infinity],
	['NaN in a list', { total: [NaN] }],
	['an invalid date', new Date(NaN)],
	['a Map', new Map([['a', 1]])],
	['a Set in a list', [new Set([1])]],
	['a function', { run: () => 1 }],
	['a symbol', { mark: Symbol('x') }],
	['a regular expression', /x/],
	['an error', new Error(SECRET)],
	['bytes in an ArrayBuffer', new ArrayBuffer(2)],
];

const between = (value: unknown): INodeExecutionData[] => ['before', 'the one', 'after'].map((id) => ({ json: { id, value: id === 'the one' ? value : id } as IDataObject }));

async function rowTexts(): Promise<Record<string, string | null>> {
	const rows = await workbench.database.query<{ id: string; payload: string | null }>('SELECT delivery_id AS id, payload::text AS payload FROM idempotent_claims');
	return Object.fromEntries(rows.map(({ id, payload }) => [id, payload]));
}

const ids = (claims: Claim[]) => claims.map(({ deliveryId }) => deliveryId);

describe('the payload', () => {
	test.each(['claim', 'receive'])('that cannot be written as JSON is an error of its item before anything is written (%s)', async (operation) => {
		for (const [, value] of UNWRITABLE) {
			const run = await workbench.run(guarded(claimNode({ operation })), { items: between(value) });
			expect(ids(claimsOf(run, 'Claim', NEW_CLAIM))).toEqual(['before', 'after']);
			const [claim, ...more] = claimsOf(run, 'Claim', OPERATIONAL_ERROR);
			expect(claim).toMatchObject({ status: 'error', deliveryId: 'the one', handle: null, responseCode: 503, error: { kind: 'invalid_setting', message: 'The item cannot be written as JSON' } });
			expect(JSON.stringify(claim)).not.toContain(SECRET);
			expect(more).toEqual([]);
			expect(Object.keys(await rowTexts()).sort()).toEqual(['after', 'before']);
			await workbench.clear();
		}
	});

	test.each(['untilFinished', 'never'])('of an item whose field throws when it is read: an error of its item, whatever is stored (%s)', async (storePayload) => {
		const [before, item, after] = between(1);
		Object.defineProperty(item.json, 'broken', { enumerable: true, get: () => { throw new Error(SECRET); } });
		const onErrors = ['stopWorkflow', 'continueRegularOutput', 'continueErrorOutput'] as const;
		for (const onError of onErrors) {
			const run = await workbench.run(guarded(claimNode({ options: { storePayload } }, { onError })), { items: [before, item, after] });
			expect(ids(claimsOf(run, 'Claim', NEW_CLAIM))).toEqual(['before', 'after']);
			expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ status: 'error', error: { kind: 'invalid_setting', message: 'The JSON of the item cannot be read' } }]);
			expect(run.itemsOf('Claim', OPERATIONAL_ERROR)).toMatchObject([{ pairedItem: { item: 1 } }]);
			expect(Object.keys(await rowTexts()).sort()).toEqual(['after', 'before']);
			await workbench.clear();
		}
	});

	test.each(WRITABLE)('is kept exactly: %s', async (_what, value) => {
		const run = await workbench.run(guarded(), { items: between(value) });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toMatchObject([{ payloadComplete: true }, { deliveryId: 'the one', payloadComplete: true }, { payloadComplete: true }]);
		expect((await rowTexts())['the one']).toBe(JSON.stringify({ id: 'the one', value }));
		expect(run.itemsOf('Claim', NEW_CLAIM)[1].json.value).toBe(value);
	});

	test.each(LOST)('is kept as n8n itself would store the item: %s', async (_what, value) => {
		await workbench.run(guarded(), { items: between(value) });
		expect((await rowTexts())['the one']).toBe(JSON.stringify({ id: 'the one', value }));
	});

	test.each<[string, unknown]>([
		['5 MB', 'x'.repeat(5_000_000)],
		['a byte too large in two-byte characters', 'é'.repeat(512 * 1024)],
		['100,000 levels', nested(100_000)],
	])('of %s is not kept by claim, which says so, and is refused by receive', async (_what, value) => {
		const run = await workbench.run(guarded(), { items: between(value) });
		expect(claimsOf(run, 'Claim', NEW_CLAIM).map(({ deliveryId, payloadComplete }) => [deliveryId, payloadComplete])).toEqual([['before', true], ['the one', false], ['after', true]]);
		expect((await rowTexts())['the one']).toBeNull();
		await workbench.clear();

		const received = await workbench.run(guarded(claimNode({ operation: 'receive' })), { items: between(value) });
		expect(claimsOf(received, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ deliveryId: 'the one', error: { kind: 'invalid_setting', message: textWith('1 MiB') } }]);
		expect(Object.keys(await rowTexts()).sort()).toEqual(['after', 'before']);
	});

	test('of exactly 1 MiB is kept', async () => {
		const frame = JSON.stringify({ id: 'the one', value: '' }).length;
		const run = await workbench.run(guarded(), { items: between('x'.repeat(1024 * 1024 - frame)) });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)[1]).toMatchObject({ payloadComplete: true });
		expect((await rowTexts())['the one']).toHaveLength(1024 * 1024);
	});
});

describe('the fingerprint', () => {
	const node = claimNode({ options: { fingerprint: '={{ $json.value }}', payloadMismatch: 'operationalError', storePayload: 'never' } });

	test.each([...UNWRITABLE, ...LOST, ['undefined', undefined] as [string, unknown], ['100,000 levels', nested(100_000)] as [string, unknown]])(
		'that cannot be told from another is an error of its item before anything is written: %s',
		async (_what, value) => {
			const run = await workbench.run(guarded(node), { items: between(value) });
			expect(ids(claimsOf(run, 'Claim', NEW_CLAIM))).toEqual(['before', 'after']);
			const [claim, ...more] = claimsOf(run, 'Claim', OPERATIONAL_ERROR);
			expect(claim).toMatchObject({ status: 'error', handle: null, responseCode: 503, error: { kind: 'invalid_setting' } });
			expect(JSON.stringify(claim)).not.toContain(SECRET);
			expect(more).toEqual([]);
			expect(Object.keys(await rowTexts()).sort()).toEqual(['after', 'before']);
		},
	);

	test('that is broken in a redelivery is an error too, and leaves the record alone', async () => {
		await workbench.run(guarded(node), { items: between(1) });
		const before = await workbench.row('the one');
		const run = await workbench.run(guarded(node), { items: between(NaN) });
		expect(ids(claimsOf(run, 'Claim', KNOWN_DUPLICATE))).toEqual(['before', 'after']);
		expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ error: { kind: 'invalid_setting' } }]);
		expect(await workbench.row('the one')).toEqual(before);
	});

	test.each<[string, unknown, unknown]>([
		['keys in another order', { a: 1, b: { c: [1], d: null } }, { b: { d: null, c: [1] }, a: 1 }],
		['a member that is undefined, which is stored nowhere', { a: 1, b: undefined }, { a: 1 }],
		['a date and its text, which is what n8n stores of it', new Date(0), '1970-01-01T00:00:00.000Z'],
		['zero and minus zero', 0, -0],
		['5 MB', 'x'.repeat(5_000_000), 'x'.repeat(5_000_000)],
	])('is the same: %s', async (_what, first, second) => {
		await workbench.run(guarded(node), { items: between(first) });
		const run = await workbench.run(guarded(node), { items: between(second) });
		expect(claimsOf(run, 'Claim', KNOWN_DUPLICATE)[1]).toMatchObject({ deliveryId: 'the one', payloadChanged: false });
	});

	test.each<[string, unknown, unknown]>([
		['lists in another order', [1, 2], [2, 1]],
		['a number and its text', { a: 1 }, { a: '1' }],
		['null and the text null', null, 'null'],
		['null and an empty text', null, ''],
		['an empty text and something', '', 'x'],
		['an empty list and an empty object', [], {}],
		['true and the text true', true, 'true'],
		['a list and an object with its places as keys', ['a'], { 0: 'a' }],
		['a key that is named like the way it is hashed', { pairs: [['a', 1]] }, { a: 1 }],
		['a member of the prototype and none', JSON.parse('{"__proto__":{"a":1}}'), {}],
		['composed and decomposed letters', 'é', 'e\u0301'],
		['half of a surrogate pair and what Unicode puts in its place', '\ud83d', '\ufffd'],
		['NUL and nothing', 'a\u0000b', 'ab'],
		['5 MB that differ in the last character', `${'x'.repeat(5_000_000)}a`, `${'x'.repeat(5_000_000)}b`],
		['large numbers, as far as they came exactly', 9007199254740991, 9007199254740990],
	])('is another: %s', async (_what, first, second) => {
		await workbench.run(guarded(node), { items: between(first) });
		const run = await workbench.run(guarded(node), { items: between(second) });
		expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ deliveryId: 'the one', payloadChanged: true, responseCode: 422, error: { kind: 'payload_mismatch' } }]);
	});

	test('of an option that was added and left blank is none', async () => {
		const run = await workbench.run(guarded(claimNode({ options: { fingerprint: '' } })), { items: between(1) });
		expect(claimsOf(run, 'Claim', NEW_CLAIM)).toHaveLength(3);
		expect(await workbench.row('the one')).toMatchObject({ fingerprint: null });
	});

	// Hashes that are in people's tables: another formula would report each redelivery as changed.
	test('never changes between releases', () => {
		expect(fingerprintOf({ b: [1, 'x', null], a: { d: true, c: '' } })).toBe('d18aCWQuwxS2EFLYD4gn-03a1GqL7SmbV_819RmCHjY');
	});
});

describe('the result of an outcome', () => {
	const complete = settling({ claimFrom: 'handle', handle: '={{ $json.handle }}', options: { result: '={{ $json.value }}', keepPayload: true } });

	/** Completes two claims of three with a plain result and the one between them with `value`. */
	async function completeWith(value: unknown) {
		const handles = await claimHandles(workbench, ['before', 'the one', 'after']);
		const items = handles.map((handle, index) => ({ json: { handle, value: index === 1 ? value : 'plain' } as IDataObject }));
		return await workbench.run(complete, { items });
	}

	const asSeenLater = async () => claimsOf(await workbench.run(guarded(), { items: [{ json: { id: 'the one' } }] }), 'Claim', KNOWN_DUPLICATE)[0].outcome?.result;

	test.each([...UNWRITABLE, ['a symbol', Symbol('x')] as [string, unknown], ['100,000 levels', nested(100_000)] as [string, unknown], ['64 KiB and a byte', 'x'.repeat(64 * 1024 - 1)] as [string, unknown]])(
		'that cannot be kept is an error of its item before anything is written: %s',
		async (_what, value) => {
			const run = await completeWith(value);
			expect(claimsOf(run, 'Complete', RECORDED)).toMatchObject([{ deliveryId: 'before', state: 'completed' }, { deliveryId: 'after', state: 'completed' }]);
			const [claim, ...more] = claimsOf(run, 'Complete', OPERATIONAL_ERROR);
			expect(claim).toMatchObject({ status: 'error', error: { kind: 'invalid_setting', sqlState: null } });
			expect(JSON.stringify(claim)).not.toContain(SECRET);
			expect(more).toEqual([]);
			expect(await workbench.row('the one')).toMatchObject({ state: 'processing', outcome_recorded_at: null, outcome_result: null });
		},
	);

	test.each(WRITABLE.filter(([, value]) => value !== null && value !== ''))('is given back exactly: %s', async (_what, value) => {
		expect(claimsOf(await completeWith(value), 'Complete', RECORDED)).toHaveLength(3);
		const stored: unknown = JSON.parse(JSON.stringify(value));
		expect(JSON.stringify(await asSeenLater())).toBe(JSON.stringify(stored));
	});

	test.each([null, ''])('that is %j is none', async (value) => {
		expect(claimsOf(await completeWith(value), 'Complete', RECORDED)).toHaveLength(3);
		expect(await asSeenLater()).toBeNull();
	});

	// The option is a JSON field: people type JSON into it.
	test.each<[string, unknown, string]>([
		['{"a":1,"b":[true]}', { a: 1, b: [true] }, '{"a":1,"b":[true]}'],
		[' 5 ', 5, ' 5 '],
		['"\\u0000"', '\u0000', '"\\u0000"'],
		['"\ud83d"', '\ud83d', '"\\ud83d"'],
		['12345678901234567890.10', 12345678901234567890.1, '12345678901234567890.10'],
		['not JSON', 'not JSON', '"not JSON"'],
		['a\u0000b', 'a\u0000b', '"a\\u0000b"'],
	])('typed as the text %j is that JSON', async (text, value, stored) => {
		expect(claimsOf(await completeWith(text), 'Complete', RECORDED)).toHaveLength(3);
		expect(await asSeenLater()).toEqual(value);
		expect(await workbench.database.query(`SELECT outcome_result::text AS result FROM idempotent_claims WHERE delivery_id = 'the one'`)).toEqual([{ result: stored }]);
	});

	test('typed as JSON text of 20,000 levels is refused: neither n8n nor PostgreSQL could write it again', async () => {
		const run = await completeWith('['.repeat(20_000) + ']'.repeat(20_000));
		expect(claimsOf(run, 'Complete', OPERATIONAL_ERROR)).toMatchObject([{ error: { kind: 'invalid_setting', message: textWith('nested too deep') } }]);
		expect(await workbench.row('the one')).toMatchObject({ state: 'processing' });
	});

	test('of exactly 64 KiB is kept', async () => {
		await completeWith('x'.repeat(64 * 1024 - 2));
		expect(await asSeenLater()).toHaveLength(64 * 1024 - 2);
	});

	test('of an item whose field throws when it is read is an error of its item', async () => {
		const [handle, other] = await claimHandles(workbench, ['the one', 'other']);
		const json = { handle } as IDataObject;
		Object.defineProperty(json, 'broken', { enumerable: true, get: () => { throw new Error(SECRET); } });
		const run = await workbench.run(settling({ claimFrom: 'handle', handle: '={{ $json.handle }}' }), { items: [{ json }, { json: { handle: other } }] });
		expect(claimsOf(run, 'Complete', RECORDED)).toMatchObject([{ deliveryId: 'other' }]);
		expect(claimsOf(run, 'Complete', OPERATIONAL_ERROR)).toMatchObject([{ error: { kind: 'invalid_setting' } }]);
		expect(await workbench.row('the one')).toMatchObject({ state: 'processing' });
	});
});
