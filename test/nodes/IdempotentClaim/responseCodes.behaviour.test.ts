import type { IDataObject } from 'n8n-workflow';
import { claimNode, claimsOf, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, Workbench } from '../../support/workbench';
import { freePort } from '../../support/freePort';

/** One Respond to Webhook node serves all branches with `{{ $json.claim.responseCode }}`. */

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const claim = async (parameters: IDataObject = {}) => await workbench.run(guarded(claimNode(parameters)), { items: deliveries('d1') });
const STATES: Record<string, string> = {
	processing: "lease_expires_at = now() + interval '1 h'",
	completed: 'lease_expires_at = NULL',
	retryable_failure: "lease_expires_at = NULL, retry_at = now() + interval '1 h'",
	outcome_uncertain: 'lease_expires_at = NULL',
	needs_review: 'lease_expires_at = NULL',
};

test.each([
	['claim', true, { processing: 200, completed: 200, retryable_failure: 503, outcome_uncertain: 200, needs_review: 200 }],
	['claim', false, { processing: 503, completed: 200, retryable_failure: 503, outcome_uncertain: 503, needs_review: 503 }],
	['receive', true, { processing: 200, completed: 200, retryable_failure: 200, outcome_uncertain: 200, needs_review: 200 }],
])('duplicates of a delivery that came by %s, payload complete: %s', async (operation, complete, expected) => {
	await claim({ operation, options: complete ? {} : { storePayload: 'never' } });
	const seen: Record<string, number> = {};
	for (const [state, rest] of Object.entries(STATES)) {
		await workbench.change('d1', `state = '${state}', retry_at = NULL, lease_expires_at = NULL`);
		await workbench.change('d1', rest);
		seen[state] = claimsOf(await claim(), 'Claim', KNOWN_DUPLICATE)[0].responseCode;
	}
	expect(seen).toEqual(expected);
});

test.each(['claim', 'receive', 'deduplicate'])('New Claim of %s says 200', async (operation) => {
	expect(claimsOf(await claim({ operation }), 'Claim', NEW_CLAIM)[0].responseCode).toBe(200);
});

test('a bad ID says 400, and does not touch what its neighbours say', async () => {
	const run = await workbench.run(guarded(), { items: deliveries('d1', null, [], 'd1') });
	expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR).map(({ responseCode }) => responseCode)).toEqual([400, 400]);
	expect([...claimsOf(run, 'Claim', NEW_CLAIM), ...claimsOf(run, 'Claim', KNOWN_DUPLICATE)].map(({ responseCode }) => responseCode)).toEqual([200, 200]);
});

test('a wrong setting says 503: the sender shall come again', async () => {
	expect(claimsOf(await claim({ options: { leaseSeconds: -1 } }), 'Claim', OPERATIONAL_ERROR)[0].responseCode).toBe(503);
});

test('an error of the store says 503', async () => {
	const run = await workbench.run(guarded(), { items: deliveries('d1'), credentials: { store: workbench.credential({ port: await freePort() }) } });
	expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ responseCode: 503, error: { kind: 'store_unreachable', retryable: true } }]);
});

test('one item with an error of the store: every item of the run says 503, whichever is answered', async () => {
	// Another session holds one key, uncommitted: that item alone is busy.
	await claim();
	const holder = await workbench.transaction();
	await holder.query(`INSERT INTO idempotent_claims SELECT (jsonb_populate_record(c, '{"delivery_id":"held"}')).* FROM idempotent_claims c WHERE delivery_id = 'd1'`);
	try {
		const run = await workbench.run(guarded(), { items: deliveries('d1', 'd2', 'held', null), credentials: { store: workbench.credential({ timeoutMs: 300 }) } });
		expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ deliveryId: 'held', error: { kind: 'store_busy', retryable: true } }, { error: { kind: 'missing_delivery_id' } }]);
		const codes = [NEW_CLAIM, KNOWN_DUPLICATE, OPERATIONAL_ERROR].map((output) => claimsOf(run, 'Claim', output).map(({ responseCode }) => responseCode));
		expect(codes).toEqual([[503], [503], [503, 503]]);
	} finally {
		await holder.rollBack();
	}
	expect((await workbench.rows()).map((row) => row.delivery_id)).toEqual(['d1', 'd2']);
});
