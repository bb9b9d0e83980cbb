import { randomUUID } from 'node:crypto';
import { sandboxAddress } from './support/address';
import { ClaimTable } from './support/claimTable';
import { N8n } from './support/n8n';
import { completeClaim, idempotentClaim, webhook } from './support/workflow';

/** What a sender hears of a workflow that wires only New Claim, as a person does first. */

const SOURCE = `answers-${randomUUID().slice(0, 8)}`;
const claims = new ClaimTable();

beforeAll(async () => {
	await new N8n().publish({
		name: SOURCE,
		nodes: [webhook(SOURCE, 'lastNode'), idempotentClaim({ source: SOURCE, deliveryId: '={{ $json.body.id }}' }), completeClaim({})],
		wires: ['Webhook > Idempotent Claim', 'Idempotent Claim > Complete Claim'],
	});
});
afterAll(async () => await claims.close());

async function deliver(body: unknown): Promise<Response> {
	return await fetch(`${sandboxAddress().n8nUrl}/webhook/${SOURCE}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
}

test('Known Duplicate not connected, answered when the last node finishes: the sender still gets success', async () => {
	const delivery = { id: randomUUID() };
	for (const time of ['first', 'again', 'once more']) expect({ time, status: (await deliver(delivery)).status }).toEqual({ time, status: 200 });
	expect(await claims.rows(SOURCE)).toMatchObject([{ deliveryId: delivery.id, state: 'completed', attempt: 1 }]);
});

test('Operational Error not connected: no success for the sender, who keeps the delivery', async () => {
	expect((await deliver({ id: '' })).status).toBe(500);
	expect((await claims.rows(SOURCE)).filter(({ deliveryId }) => deliveryId === '')).toEqual([]);
});
