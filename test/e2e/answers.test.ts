import { randomUUID } from 'node:crypto';
import { ClaimTable } from './support/claimTable';
import { N8n } from './support/n8n';
import { callWebhook } from './support/webhookCall';
import { completeClaim, idempotentClaim, node, webhook } from './support/workflow';

/** What a sender hears where the Webhook node answers "When Last Node Finishes". */

const RUN = randomUUID().slice(0, 8);
const WIRED = `answers-wired-${RUN}`;
const HALF_WIRED = `answers-half-wired-${RUN}`;
const claims = new ClaimTable();

beforeAll(async () => {
	const n8n = new N8n();
	for (const source of [WIRED, HALF_WIRED]) {
		const wires = ['Webhook > Idempotent Claim', 'Idempotent Claim > Complete Claim', ...(source === WIRED ? ['Idempotent Claim:1 > noOp'] : [])];
		const nodes = [webhook(source, 'lastNode'), idempotentClaim({ source, deliveryId: '={{ $json.body.id }}' }), completeClaim({}), node('noOp', 1, {})];
		await n8n.publish({ name: source, nodes, wires });
	}
});
afterAll(async () => await claims.close());

async function deliver(source: string, body: unknown): Promise<number> {
	return (await callWebhook(source, body)).status;
}

test('Known Duplicate connected: success for every copy', async () => {
	const delivery = { id: randomUUID() };
	expect([await deliver(WIRED, delivery), await deliver(WIRED, delivery), await deliver(WIRED, delivery)]).toEqual([200, 200, 200]);
	expect(await claims.rows(WIRED)).toMatchObject([{ deliveryId: delivery.id, state: 'completed', attempt: 1 }]);
});

test('Known Duplicate not connected: n8n finds nothing to answer a copy with; nothing is done twice', async () => {
	const delivery = { id: randomUUID() };
	expect([await deliver(HALF_WIRED, delivery), await deliver(HALF_WIRED, delivery)]).toEqual([200, 500]);
	expect(await claims.rows(HALF_WIRED)).toMatchObject([{ deliveryId: delivery.id, state: 'completed', attempt: 1 }]);
});

test('Operational Error not connected: no success for the sender, who keeps the delivery', async () => {
	expect(await deliver(HALF_WIRED, { id: '' })).toBe(500);
	expect((await claims.rows(HALF_WIRED)).filter(({ deliveryId }) => deliveryId === '')).toEqual([]);
});
