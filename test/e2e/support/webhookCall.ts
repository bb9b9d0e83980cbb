import { sandboxAddress } from './address';

const JSON_BODY = { 'content-type': 'application/json' };

export interface WebhookAnswer {
	status: number;
	text: string;
}

/**
 * Posts to a webhook of the sandbox's n8n, as JSON.
 *
 * @param webhook its path, or its whole address
 */
export async function callWebhook(webhook: string, body: unknown, headers: Record<string, string> = {}): Promise<WebhookAnswer> {
	return await sendToWebhook(webhook, JSON.stringify(body), { ...JSON_BODY, ...headers });
}

/** The same with a body that goes out as it is written. */
export async function sendToWebhook(webhook: string, body: string | FormData, headers: Record<string, string> = typeof body === 'string' ? JSON_BODY : {}): Promise<WebhookAnswer> {
	const response = await fetch(new URL(webhook, `${sandboxAddress().n8nUrl}/webhook/`), { method: 'POST', headers, body });
	return { status: response.status, text: await response.text() };
}
