import { randomInt, randomUUID } from 'node:crypto';

/** An order as a shop sends it: about 2 KB of JSON text, no two alike. */
export function anOrder(): string {
	const items = Array.from({ length: 14 }, (_, place) => ({ line: place + 1, sku: `SKU-${randomInt(1e6)}`, variant: randomUUID(), quantity: randomInt(1, 9), price: randomInt(1e5) / 100 }));
	const id = randomUUID();
	return JSON.stringify({
		headers: { 'content-type': 'application/json', 'user-agent': 'Shop-Webhooks/2.0', 'x-delivery-id': id },
		body: { id, type: 'order.created', createdAt: new Date().toISOString(), customer: { id: randomUUID(), email: `customer-${randomInt(1e6)}@example.com`, name: 'Example Customer' }, items },
	});
}
