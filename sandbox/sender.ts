import { createHmac, randomUUID } from 'node:crypto';

/** What the examples' sender and n8n know, and nobody else; fit for nothing but a sandbox. */
export const SENDER_SECRET = 'Sandbox-only-5';

/** What the examples' sender tells of: each event is to become one lead. */
export interface LeadEvent {
	id: string;
	type: 'lead.created';
	lead: { email: string; name: string };
}

/** An event with an ID and an e-mail address that no run has used before. */
export function newEvent(id = `evt_${randomUUID()}`): LeadEvent {
	return { id, type: 'lead.created', lead: { email: `${id}@example.com`, name: 'Example Lead' } };
}

/** A request as the sender makes it, signed as many do: HMAC-SHA256 of the body's bytes, in hexadecimal digits. */
export function signed(event: unknown): { body: string; headers: Record<string, string> } {
	const body = JSON.stringify(event);
	const signature = createHmac('sha256', SENDER_SECRET).update(body).digest('hex');
	return { body, headers: { 'content-type': 'application/json', 'x-signature-256': `sha256=${signature}` } };
}
