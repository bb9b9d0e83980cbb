import type { IDataObject } from 'n8n-workflow';

/** What one sender delivers: made up, in the shape of the real thing. */
export interface Sample {
	/** The JSON that the Webhook node makes of it; of a sender that posts arrays, one element as Split Out makes it. */
	readonly delivery: IDataObject;
	/** The same delivery once more, with everything that the sender changes at another try. */
	readonly redelivery: IDataObject;
	/** As like the first as another event of this sender can be. */
	readonly anotherEvent: IDataObject;
	/** What is stored with the claim; delivery ID and account are in `publishedRules.test.ts`. */
	readonly eventType: string;
	readonly retentionDays: number;
	/** What the sender is told about a new claim. */
	readonly responseCode?: number;
}

/** An item of n8n's Webhook node: header names in lower case, body parsed. */
export function request(headers: IDataObject, body: IDataObject | IDataObject[], contentType = 'application/json'): IDataObject {
	return {
		headers: {
			host: 'n8n.example.com',
			'content-type': contentType,
			'content-length': String(JSON.stringify(body).length),
			accept: '*/*',
			'accept-encoding': 'gzip',
			'x-forwarded-for': '203.0.113.20',
			'x-forwarded-proto': 'https',
			...headers,
		},
		params: {},
		query: {},
		body,
		webhookUrl: 'https://n8n.example.com/webhook/events',
		executionMode: 'production',
	};
}

/** The same request with other headers, and other fields at the top of its body. */
export function changed(item: IDataObject, headers: IDataObject, body: IDataObject = {}): IDataObject {
	return { ...item, headers: { ...(item.headers as IDataObject), ...headers }, body: { ...(item.body as IDataObject), ...body } };
}
