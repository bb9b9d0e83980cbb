import { matchEach } from '../../store/pattern';
import { textWith } from '../support/matchers';
import { claimNode, claimsOf, deliveries, guarded, NEW_CLAIM, OPERATIONAL_ERROR, Workbench } from '../support/workbench';

/** Delivery ID Pattern: what a stranger sends is matched in bounded time, however unlucky the pattern. */

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

/** Doubles its work with each letter before a wrong end. */
const CATASTROPHIC = '^(a+)+$';
const HOSTILE = `${'a'.repeat(60)}!`;

test('a hostile ID against a catastrophic pattern is refused, its neighbours are not, and other work of the process goes on', async () => {
	const run = await workbench.run(guarded(claimNode({ options: { deliveryIdPattern: CATASTROPHIC } })), { items: deliveries('aa', HOSTILE, 'aaa', 'b') });
	expect(claimsOf(run, 'Claim', NEW_CLAIM).map(({ deliveryId }) => deliveryId)).toEqual(['aa', 'aaa']);
	expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([
		// The sender is to come again: the pattern is at fault.
		{ responseCode: 503, deliveryId: null, idempotencyKey: null, error: { kind: 'invalid_setting', message: textWith('takes too long') } },
		{ responseCode: 400, deliveryId: null, error: { kind: 'invalid_delivery_id' } },
	]);
	expect((await workbench.rows()).map((row) => row.delivery_id)).toEqual(['aa', 'aaa']);
});

test('between two slow IDs the process gets its turn', async () => {
	let turns = 0;
	const counting = setInterval(() => turns++, 0);
	const verdicts = await matchEach(Array.from({ length: 3 }, () => ({ pattern: /^(a+)+$/u, text: HOSTILE })));
	clearInterval(counting);
	expect(verdicts).toEqual(['too slow', 'too slow', 'too slow']);
	expect(turns).toBeGreaterThanOrEqual(2);
});

test('hundreds of hostile IDs in one execution do not take hundreds of times as long: after ten the rest is refused unseen', async () => {
	const hostile = { pattern: /^(a+)+$/u, text: HOSTILE };
	const harmless = { pattern: /^(a+)+$/u, text: 'a' };
	const verdicts = await matchEach([harmless, ...Array.from({ length: 10 }, () => hostile), harmless, hostile]);
	expect(verdicts).toEqual(['matches', ...Array.from({ length: 10 }, () => 'too slow'), 'too slow', 'too slow']);
});

test('many IDs of harmless patterns each have their own verdict, also where together they take longer than one may', async () => {
	// About 0.1 ms each: 3,000 of them go over the time of one.
	const texts = Array.from({ length: 3000 }, (_, index) => `${'a'.repeat(14)}${index % 3 === 0 ? '' : '!'}`);
	const verdicts = await matchEach(texts.map((text) => ({ pattern: /^(a+)+$/u, text })));
	expect(verdicts).toEqual(texts.map((text) => (text.endsWith('!') ? 'differs' : 'matches')));
});

test('a pattern may differ from item to item', async () => {
	const verdicts = await matchEach([
		{ pattern: /^a/u, text: 'abc' },
		{ pattern: /^b/u, text: 'abc' },
		{ pattern: /^\p{L}+$/u, text: 'é' },
	]);
	expect(verdicts).toEqual(['matches', 'differs', 'matches']);
	expect(await matchEach([])).toEqual([]);
});

test('a whole number is matched as its text, and the pattern sees the whole ID unless it says otherwise', async () => {
	const run = await workbench.run(guarded(claimNode({ options: { deliveryIdPattern: '^\\d+$' } })), { items: deliveries(42, '42x') });
	expect(claimsOf(run, 'Claim', NEW_CLAIM).map(({ deliveryId }) => deliveryId)).toEqual(['42']);
	expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ error: { kind: 'invalid_delivery_id', hint: textWith('/^\\d+$/u') } }]);
});

test.each(['(', '[', 'a{2,1}', '\\', 5, {}, ['a']])('what is no pattern (%j) refuses every item, also a matching one', async (pattern) => {
	const run = await workbench.run(guarded(claimNode({ options: { deliveryIdPattern: pattern as string } })), { items: deliveries('d1') });
	expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ responseCode: 503, error: { kind: 'invalid_setting' } }]);
	expect(await workbench.rows()).toEqual([]);
});
