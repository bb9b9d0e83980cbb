import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { Client } from 'pg';
import { createTestDatabase, type TestDatabase } from './database';
import { startProxy, type Proxy } from './proxy';

let database: TestDatabase;
let proxy: Proxy;

beforeAll(async () => {
	database = await createTestDatabase();
	await database.query('CREATE TABLE arrived (note text)');
});
beforeEach(async () => {
	proxy = await startProxy(database);
	await database.query('TRUNCATE arrived');
});
afterEach(async () => await proxy.close());
afterAll(async () => await database.drop());

async function connect(): Promise<Client> {
	const client = new Client({ ...database, host: proxy.host, port: proxy.port });
	client.on('error', () => undefined);
	await client.connect();
	return client;
}
const insert = (client: Client) => client.query('INSERT INTO arrived VALUES ($1)', ['x']);
const arrived = async () => (await database.query('SELECT note FROM arrived')).length;

test('forwards', async () => {
	const client = await connect();
	await insert(client);
	await client.end();
	expect(await arrived()).toBe(1);
});

test('loses the answer to a statement that the server has committed', async () => {
	const client = await connect();
	const lost = proxy.loseAnswerTo('INSERT INTO');
	expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
	await expect(insert(client)).rejects.toThrow('Connection terminated');
	await lost.happened;
	expect(await arrived()).toBe(1);
});

test('cuts the line in the middle of the answer to a statement that the server has committed', async () => {
	const client = await connect();
	const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
	const before = stream.bytesRead;
	const cut = proxy.cutInsideAnswerTo('INSERT INTO');
	await expect(insert(client)).rejects.toThrow('Connection terminated');
	await cut.happened;
	expect(stream.bytesRead).toBeGreaterThan(before);
	expect(await arrived()).toBe(1);
});

test('cuts the line before a statement reaches the server', async () => {
	const client = await connect();
	proxy.cutBefore('INSERT INTO');
	await expect(insert(client)).rejects.toThrow('Connection terminated');
	expect(await arrived()).toBe(0);

	const again = await connect();
	await insert(again);
	await again.end();
	expect(await arrived()).toBe(1);
});

test('holds a statement, which can land after its client has gone', async () => {
	const client = await connect();
	const held = proxy.hold('INSERT INTO');
	const answer = insert(client).catch((error: Error) => error.message);
	await held.happened;
	expect(await arrived()).toBe(0);

	(client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
	expect(await answer).toContain('Connection terminated');
	held.release();
	while ((await arrived()) === 0);
	expect(await arrived()).toBe(1);
});

test('swallows an answer and leaves the line open', async () => {
	const client = await connect();
	const swallowed = proxy.swallowAnswerTo('INSERT INTO');
	let answered = false;
	void insert(client).then(
		() => (answered = true),
		() => undefined,
	);
	await swallowed.happened;
	expect(await arrived()).toBe(1);
	expect(answered).toBe(false);
});

test('refuses, then carries again', async () => {
	await proxy.refuse();
	await expect(connect()).rejects.toThrow('ECONNREFUSED');
	await proxy.forward();
	await (await connect()).end();
});

test('goes silent: the line is open and nothing is answered', async () => {
	const client = await connect();
	proxy.goSilent();
	const answer = client.query({ text: 'SELECT 1', query_timeout: 50 } as never);
	await expect(answer).rejects.toThrow('Query read timeout');
	const late = new Client({ ...database, host: proxy.host, port: proxy.port, connectionTimeoutMillis: 50 });
	await expect(late.connect()).rejects.toThrow('timeout');
	expect(proxy.accepted).toBe(2);
});

test('what a silent network has kept arrives when it is back, also from a client that has given up', async () => {
	const [patient, impatient] = [await connect(), await connect()];
	const silent = proxy.goSilentAt('INSERT INTO');
	const late = insert(patient);
	await silent.happened;
	await expect(impatient.query({ text: 'INSERT INTO arrived VALUES ($1)', values: ['y'], query_timeout: 50 } as never)).rejects.toThrow('Query read timeout');
	const { stream } = (impatient as unknown as { connection: { stream: Socket } }).connection;
	stream.destroy();
	await once(stream, 'close');
	expect(await arrived()).toBe(0);

	await proxy.forward();
	expect(await late).toMatchObject({ rowCount: 1 });
	await patient.end();
	while (proxy.open > 0) await setImmediate();
	expect(await arrived()).toBe(2);
});

test('delays', async () => {
	const client = await connect();
	proxy.delay(30);
	const begun = Date.now();
	await client.query('SELECT 1');
	expect(Date.now() - begun).toBeGreaterThanOrEqual(55);
	await client.end();
});
