import fc from 'fast-check';
import { ClaimError } from '../../store/errors';
import { idempotencyKey, MAX_DELIVERY_ID_BYTES, MAX_PART_BYTES, readDeliveryId, readIdentityPart, readNote } from '../../store/identity';
import { anIdentity } from './support/claims';

/** "What a delivery ID may be" of the contract. */

function kindOf(read: () => unknown): string {
	try {
		read();
		return 'accepted';
	} catch (failure) {
		if (!(failure instanceof ClaimError)) throw failure;
		return failure.kind;
	}
}

/** Four bytes of UTF-8, two UTF-16 units. */
const FOUR_BYTES = '😀';

describe('a delivery ID that is refused', () => {
	test.each<[string, unknown, string]>([
		['null', null, 'missing_delivery_id'],
		['undefined', undefined, 'missing_delivery_id'],
		['empty text', '', 'missing_delivery_id'],
		['only spaces', '   ', 'missing_delivery_id'],
		['only a tab and a line end', '\t\n', 'missing_delivery_id'],
		['only a no-break space', '\u00a0', 'missing_delivery_id'],
		['the text "undefined"', 'undefined', 'missing_delivery_id'],
		['the text "null"', 'null', 'missing_delivery_id'],
		['the text "NaN"', 'NaN', 'missing_delivery_id'],
		['the text "[object Object]"', '[object Object]', 'missing_delivery_id'],
		['leading white space', ' evt_1', 'invalid_delivery_id'],
		['trailing white space', 'evt_1 ', 'invalid_delivery_id'],
		['a trailing line end', 'evt_1\n', 'invalid_delivery_id'],
		['true', true, 'invalid_delivery_id'],
		['false', false, 'invalid_delivery_id'],
		['an array', ['evt_1'], 'invalid_delivery_id'],
		['an object', { id: 'evt_1' }, 'invalid_delivery_id'],
		['a date', new Date(0), 'invalid_delivery_id'],
		['a BigInt', 10n, 'invalid_delivery_id'],
		['a boxed text', Object('evt_1'), 'invalid_delivery_id'],
		['NaN', NaN, 'invalid_delivery_id'],
		['Infinity', Infinity, 'invalid_delivery_id'],
		['a fraction', 1.5, 'invalid_delivery_id'],
		['an unsafe integer', 2 ** 53, 'invalid_delivery_id'],
		['a negative unsafe integer', -(2 ** 53), 'invalid_delivery_id'],
		['NUL', 'evt\0_1', 'invalid_delivery_id'],
		['a control character', 'evt\u0007_1', 'invalid_delivery_id'],
		['DEL', 'evt\u007f_1', 'invalid_delivery_id'],
		['a C1 control character', 'evt\u0085_1', 'invalid_delivery_id'],
		['a lone high surrogate', 'evt_\ud83d', 'invalid_delivery_id'],
		['a lone low surrogate', '\ude00_evt', 'invalid_delivery_id'],
		['a surrogate pair the wrong way round', 'a\ude00\ud83db', 'invalid_delivery_id'],
		['one byte too many', 'x'.repeat(MAX_DELIVERY_ID_BYTES + 1), 'invalid_delivery_id'],
		['too many bytes in few characters', FOUR_BYTES.repeat(MAX_DELIVERY_ID_BYTES / 4) + 'x', 'invalid_delivery_id'],
	])('%s', (_what, value, kind) => {
		expect(kindOf(() => readDeliveryId(value))).toBe(kind);
	});

	test('its error says what is wrong and what to do, and is not worth a retry', () => {
		expect.assertions(3);
		try {
			readDeliveryId(2 ** 53);
		} catch (failure) {
			const error = failure as ClaimError;
			expect(error.message).toContain('already rounded before it came here');
			expect(error.hint).toContain('as text');
			expect(error.retryable).toBe(false);
		}
	});
});

describe('a delivery ID that is accepted', () => {
	test.each<[string, unknown, string]>([
		['a text', 'evt_1', 'evt_1'],
		['inner white space', 'evt 1', 'evt 1'],
		['a text of digits keeps its zeros', '007', '007'],
		['a whole number', 42, '42'],
		['zero', 0, '0'],
		['minus zero', -0, '0'],
		['a negative number', -7, '-7'],
		['the largest safe integer', Number.MAX_SAFE_INTEGER, '9007199254740991'],
		['the text "true"', 'true', 'true'],
		['"NULL": only the exact leftovers of expressions are refused', 'NULL', 'NULL'],
		['as many bytes as allowed', 'x'.repeat(MAX_DELIVERY_ID_BYTES), 'x'.repeat(MAX_DELIVERY_ID_BYTES)],
		['as many four-byte characters as allowed', FOUR_BYTES.repeat(MAX_DELIVERY_ID_BYTES / 4), FOUR_BYTES.repeat(MAX_DELIVERY_ID_BYTES / 4)],
	])('%s', (_what, value, text) => {
		expect(readDeliveryId(value)).toBe(text);
	});

	test('whatever is accepted is the value itself, and small enough', () => {
		fc.assert(
			fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.maxSafeInteger(), fc.anything()), (value) => {
				let text: string;
				try {
					text = readDeliveryId(value);
				} catch (failure) {
					return failure instanceof ClaimError && failure.kind.endsWith('_delivery_id');
				}
				return text === (typeof value === 'number' ? String(value + 0) : value) && Buffer.byteLength(text) <= MAX_DELIVERY_ID_BYTES;
			}),
			{ numRuns: 1000 },
		);
	});
});

describe.each(['source', 'account', 'action'] as const)('%s', (name) => {
	test.each<[string, unknown]>([
		['null', null],
		['undefined', undefined],
		['white space', ' '],
		['surrounding white space', ' shop'],
		['a leftover of an expression', 'undefined'],
		['an object', {}],
		['a control character', 'a\0b'],
		['a lone surrogate', '\ud83d'],
		['one byte too many', 'x'.repeat(MAX_PART_BYTES + 1)],
		['too many bytes in few characters', `${FOUR_BYTES.repeat(MAX_PART_BYTES / 4)}x`],
	])('refuses %s', (_what, value) => {
		expect(kindOf(() => readIdentityPart(name, value))).toBe('invalid_setting');
	});

	test('accepts as many bytes as allowed', () => {
		expect(readIdentityPart(name, FOUR_BYTES.repeat(MAX_PART_BYTES / 4))).toHaveLength(MAX_PART_BYTES / 2);
	});

	test(name === 'source' ? 'may not be empty' : 'may be empty', () => {
		expect(kindOf(() => readIdentityPart(name, ''))).toBe(name === 'source' ? 'invalid_setting' : 'accepted');
	});
});

describe('a note beside a claim', () => {
	test('is as sent, null when empty, refused when it cannot be stored', () => {
		expect(readNote('Reason', 'timed out')).toBe('timed out');
		expect(readNote('Reason', 7)).toBe('7');
		for (const empty of [null, undefined, '']) expect(readNote('Reason', empty)).toBeNull();
		for (const bad of [{}, true, 'a\0b', '\ud83d', 'x'.repeat(2049), NaN]) expect(kindOf(() => readNote('Reason', bad))).toBe('invalid_setting');
	});
});

describe('the idempotency key', () => {
	const identity = anIdentity({ deliveryId: 'evt_1' });

	test('is a valid UUID', () => {
		expect(idempotencyKey(identity)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
	});

	test('is a pure function of the identity', () => {
		expect(idempotencyKey({ ...identity })).toBe(idempotencyKey(identity));
	});

	// A changed formula would let destinations repeat what they did for the same delivery under the old key.
	test('never changes between releases', () => {
		expect(idempotencyKey({ deliveryId: 'evt_1', source: 'shop', account: '', action: 'lead', environment: 'live' })).toBe(
			'dadfbad0-0951-87d4-9f26-dd967cfe4789',
		);
	});

	test('differs with any part of the identity', () => {
		const others = [{ deliveryId: 'evt_2' }, { source: 'other' }, { account: 'other' }, { action: 'other' }, { environment: 'test' as const }];
		const keys = [{}, ...others].map((change) => idempotencyKey({ ...identity, ...change }));
		expect(new Set(keys).size).toBe(keys.length);
	});
});
