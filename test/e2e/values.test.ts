import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { sandboxAddress } from './support/address';
import { ClaimTable } from './support/claimTable';
import { N8n } from './support/n8n';
import { sendToWebhook } from './support/webhookCall';
import { idempotentClaim, node, type WorkflowPlan } from './support/workflow';

/** What becomes of a delivery ID on its way through n8n's Webhook node: what arrives changed is refused, what arrives exactly is kept exactly. */

interface Claim {
	status: string;
	responseCode: number;
	deliveryId: string | null;
	payloadComplete: boolean | null;
	error: { kind: string; message: string; hint: string | null } | null;
}

interface Answer {
	status: number;
	claim: Claim;
}

const RUN = randomUUID().slice(0, 8);
const SOURCES = { body: `values-body-${RUN}`, header: `values-header-${RUN}`, list: `values-list-${RUN}` };

let claims: ClaimTable;

beforeAll(async () => {
	const n8n = new N8n();
	claims = new ClaimTable();
	await n8n.publish(answering(SOURCES.body, '={{ $json.body.id }}'));
	await n8n.publish(answering(SOURCES.header, '={{ $json.headers["x-delivery-id"] }}'));
	await n8n.publish(answering(SOURCES.list, '={{ $json.body[0].id }}'));
	// The first claim makes the table that the tests look into.
	await send(SOURCES.body, '{"id":"the first"}');
});

afterAll(async () => await claims.close());

/** Answers each delivery with its claim, whichever output it leaves by, and with the claim's response code. */
function answering(source: string, deliveryId: string): WorkflowPlan {
	const webhook = { ...node('webhook', 2.1, { httpMethod: 'POST', path: source, responseMode: 'responseNode', options: {} }, 'Webhook'), extra: { webhookId: randomUUID() } };
	const respond = node('respondToWebhook', 1.5, { respondWith: 'json', responseBody: '={{ JSON.stringify($json.claim) }}', options: { responseCode: '={{ $json.claim.responseCode }}' } }, 'Respond');
	return {
		name: source,
		nodes: [webhook, idempotentClaim({ source, deliveryId }), respond],
		wires: ['Webhook > Idempotent Claim', ...[0, 1, 2].map((output) => `Idempotent Claim:${output} > Respond`)],
	};
}

/** Sends a body as it is written here: JSON.stringify would round a number before it leaves. */
async function send(source: string, body: string | FormData, headers?: Record<string, string>): Promise<Answer> {
	const { status, text } = await sendToWebhook(source, body, headers);
	return { status, claim: JSON.parse(text) as Claim };
}

const ids = async (source: string) => (await claims.rows(source)).map(({ deliveryId }) => deliveryId);

describe('a number in a JSON body', () => {
	test('of 64 bits was already rounded: refused, so that two events do not become one', async () => {
		const before = await ids(SOURCES.body);
		for (const id of ['7615917337495251231', '7615917337495251232', '9007199254740992', '-9007199254740992']) {
			const { status, claim } = await send(SOURCES.body, `{"id":${id}}`);
			expect(status).toBe(400);
			expect(claim).toMatchObject({ status: 'error', responseCode: 400, deliveryId: null, error: { kind: 'invalid_delivery_id' } });
			expect(claim.error?.message).toContain('already rounded');
			expect(claim.error?.hint).toContain('send it as text');
		}
		expect(await ids(SOURCES.body)).toEqual(before);
	});

	test('of 64 bits that is sent as text is exact', async () => {
		for (const id of ['7615917337495251231', '7615917337495251232']) {
			expect(await send(SOURCES.body, `{"id":"${id}"}`)).toMatchObject({ status: 200, claim: { status: 'new', deliveryId: id } });
		}
		expect(await ids(SOURCES.body)).toEqual(expect.arrayContaining(['7615917337495251231', '7615917337495251232']));
	});

	test('that is the largest exact one is its decimal text, also where the sender writes it as text the next time', async () => {
		expect(await send(SOURCES.body, '{"id":9007199254740991}')).toMatchObject({ status: 200, claim: { status: 'new', deliveryId: '9007199254740991' } });
		expect(await send(SOURCES.body, '{"id":"9007199254740991"}')).toMatchObject({ claim: { status: 'duplicate' } });
	});

	test.each(['1.5', '1e400', '-0.1', '9.007199254740993e15'])('like %s is refused', async (id) => {
		expect(await send(SOURCES.body, `{"id":${id}}`)).toMatchObject({ status: 400, claim: { error: { kind: 'invalid_delivery_id' } } });
	});
});

describe('no usable ID', () => {
	test.each<[string, string, string]>([
		['an empty body', '', 'missing_delivery_id'],
		['a body without it', '{"other":1}', 'missing_delivery_id'],
		['null', '{"id":null}', 'missing_delivery_id'],
		['an empty text', '{"id":""}', 'missing_delivery_id'],
		['the text undefined', '{"id":"undefined"}', 'missing_delivery_id'],
		['a boolean', '{"id":true}', 'invalid_delivery_id'],
		['a list', '{"id":["a"]}', 'invalid_delivery_id'],
		['an object', '{"id":{"id":"a"}}', 'invalid_delivery_id'],
		['NUL', '{"id":"a\\u0000b"}', 'invalid_delivery_id'],
		['half of a surrogate pair', '{"id":"a\\ud800"}', 'invalid_delivery_id'],
		['a byte order mark before it', '{"id":"\\ufeffa"}', 'invalid_delivery_id'],
		['a list of deliveries, which is one item', '[{"id":"a"},{"id":"b"}]', 'missing_delivery_id'],
	])('%s: 400, and nothing is claimed', async (_what, body, kind) => {
		const before = await ids(SOURCES.body);
		expect(await send(SOURCES.body, body)).toMatchObject({ status: 400, claim: { status: 'error', deliveryId: null, error: { kind } } });
		expect(await ids(SOURCES.body)).toEqual(before);
	});

	test('a body that is text, not JSON: 400', async () => {
		expect(await send(SOURCES.body, 'id=evt_1', { 'content-type': 'text/plain' })).toMatchObject({ status: 400, claim: { error: { kind: 'missing_delivery_id' } } });
	});

	test('a header that is not there: 400', async () => {
		expect(await send(SOURCES.header, '{}')).toMatchObject({ status: 400, claim: { error: { kind: 'missing_delivery_id' } } });
	});
});

describe('an ID in a header', () => {
	/** A request byte by byte: fetch would refuse or mend the header. */
	async function sendHeader(...headers: Buffer[]): Promise<Answer> {
		const { hostname, port } = new URL(sandboxAddress().n8nUrl);
		const socket = connect(Number(port), hostname);
		const lines = [`POST /webhook/${SOURCES.header} HTTP/1.1`, `Host: ${hostname}:${port}`, 'Connection: close', 'Content-Type: application/json', 'Content-Length: 2'];
		socket.write(Buffer.concat([Buffer.from(lines.map((line) => `${line}\r\n`).join('')), ...headers.flatMap((value) => [Buffer.from('X-Delivery-Id: '), value, Buffer.from('\r\n')]), Buffer.from('\r\n{}')]));
		const chunks: Buffer[] = [];
		for await (const chunk of socket) chunks.push(chunk as Buffer);
		const text = Buffer.concat(chunks).toString('utf8');
		return { status: Number(text.split(' ')[1]), claim: JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1)) as Claim };
	}

	test('of other bytes is another ID: each byte is one character', async () => {
		// é in Latin-1, é in UTF-8 (two bytes), and e.
		const bytes = [Buffer.from([0x65, 0xe9]), Buffer.from([0x65, 0xc3, 0xa9]), Buffer.from('ee')];
		const answers: Answer[] = [];
		for (const value of bytes) answers.push(await sendHeader(value));
		expect(answers).toMatchObject(bytes.map((value) => ({ status: 200, claim: { status: 'new', deliveryId: value.toString('latin1') } })));
		expect(await sendHeader(bytes[1])).toMatchObject({ claim: { status: 'duplicate' } });
	});

	test('of bytes that are control characters there (€ in UTF-8) is refused, not mended', async () => {
		expect(await sendHeader(Buffer.from('€'))).toMatchObject({ status: 400, claim: { error: { kind: 'invalid_delivery_id' } } });
		expect(await sendHeader(Buffer.from('a\tb'))).toMatchObject({ status: 400, claim: { error: { kind: 'invalid_delivery_id' } } });
	});

	test('that is sent twice is one ID of both, and no copy of either', async () => {
		expect(await sendHeader(Buffer.from('twice'))).toMatchObject({ claim: { status: 'new', deliveryId: 'twice' } });
		expect(await sendHeader(Buffer.from('twice'), Buffer.from('twice'))).toMatchObject({ claim: { status: 'new', deliveryId: 'twice, twice' } });
	});

	test('of 513 bytes is refused, of 512 is kept', async () => {
		expect(await sendHeader(Buffer.from('h'.repeat(513)))).toMatchObject({ status: 400, claim: { error: { kind: 'invalid_delivery_id' } } });
		expect(await sendHeader(Buffer.from('h'.repeat(512)))).toMatchObject({ status: 200, claim: { deliveryId: 'h'.repeat(512) } });
	});
});

describe('an ID in a form', () => {
	const form = { 'content-type': 'application/x-www-form-urlencoded' };

	test('is text, so that a number of 64 bits is exact', async () => {
		expect(await send(SOURCES.body, 'id=7615917337495251299', form)).toMatchObject({ status: 200, claim: { status: 'new', deliveryId: '7615917337495251299' } });
		const multipart = new FormData();
		multipart.set('id', '7615917337495251299');
		expect(await send(SOURCES.body, multipart)).toMatchObject({ claim: { status: 'duplicate', deliveryId: '7615917337495251299' } });
	});

	test('is decoded once: plus is a space, %2B a plus', async () => {
		expect(await send(SOURCES.body, 'id=form+1%2B1%2525', form)).toMatchObject({ status: 200, claim: { status: 'new', deliveryId: 'form 1+1%25' } });
	});

	test.each(['id=a&id=b', 'id[]=a', 'id[x]=a', 'id=', 'other=1'])('%s: no ID, 400', async (body) => {
		expect((await send(SOURCES.body, body, form)).status).toBe(400);
	});
});

describe('other bodies', () => {
	test('a list is read by its places', async () => {
		expect(await send(SOURCES.list, '[{"id":"first"},{"id":"second"}]')).toMatchObject({ status: 200, claim: { status: 'new', deliveryId: 'first' } });
	});

	test('NUL, half surrogate pairs and odd keys beside the ID do no harm, and are kept', async () => {
		expect(await send(SOURCES.body, '{"id":"odd","text":"a\\u0000b\\ud800","constructor":{"prototype":{"x":1}},"":0}')).toMatchObject({ status: 200, claim: { status: 'new', payloadComplete: true } });
	});

	test('of more than 1 MiB is claimed, and known not to be kept', async () => {
		const large = (id: string) => JSON.stringify({ id, text: 'x'.repeat(1_200_000) });
		expect(await send(SOURCES.body, large('large'))).toMatchObject({ status: 200, claim: { status: 'new', payloadComplete: false } });
		// Nobody could finish it from the record, so the sender keeps its copy.
		expect(await send(SOURCES.body, large('large'))).toMatchObject({ status: 503, claim: { status: 'duplicate', payloadComplete: false } });
	});
});
