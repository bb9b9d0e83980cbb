import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import type { IDataObject } from 'n8n-workflow';
import { freePort } from '../support/freePort';
import { claimNode, completeNode, deliveries, guarded, Workbench } from '../support/workbench';

/** No password, connection string or payload in any item, error, hint or stack, whatever fails. */

const PASSWORD = 'pa55-Word+Se~cret';
const PAYLOAD = 'a payload that is nobody’s business';

let workbench: Workbench;
beforeAll(async () => {
	workbench = await Workbench.open();
	await workbench.database.query(`CREATE ROLE keeper LOGIN PASSWORD '${PASSWORD}'`);
	await workbench.database.query('CREATE TABLE without_key (delivery_id text)');
});
afterAll(async () => {
	await workbench.database.query('DROP ROLE keeper');
	await workbench.close();
});

const connectionString = (address: string, rest = '') => `postgresql://keeper:${encodeURIComponent(PASSWORD)}@${address}${rest}`;
const server = () => `${workbench.database.host}:${workbench.database.port}/${workbench.database.database}`;

const failures: Record<string, () => Promise<IDataObject> | IDataObject> = {
	'a wrong password': () => ({ user: 'nobody', password: PASSWORD }),
	'a role without rights': () => ({ user: 'keeper', password: PASSWORD }),
	'a closed port': async () => ({ user: 'keeper', password: PASSWORD, port: await freePort() }),
	'a table without key': () => ({ table: 'without_key' }),
	'TLS that the server does not speak': () => ({ user: 'keeper', password: PASSWORD, tls: 'verifyFull' }),
	'a connection string to a closed port': async () => ({ connectWith: 'connectionString', connectionString: connectionString(`127.0.0.1:${await freePort()}/x`) }),
	'a connection string to a database that is not there': () => ({ connectWith: 'connectionString', connectionString: connectionString(`${workbench.database.host}:${workbench.database.port}/not_there`) }),
	'a connection string of a role without rights': () => ({ connectWith: 'connectionString', connectionString: connectionString(server()) }),
	'a connection string with an unknown sslmode': () => ({ connectWith: 'connectionString', connectionString: connectionString(server(), '?sslmode=prefer') }),
	'a connection string that is none': () => ({ connectWith: 'connectionString', connectionString: `postgresql://keeper:${PASSWORD}@host:notaport/x` }),
	'a connection string of another database': () => ({ connectWith: 'connectionString', connectionString: connectionString(server()).replace('postgresql', 'mysql') }),
	'a server that is no PostgreSQL': async () => ({ user: 'keeper', password: PASSWORD, port: await somethingElse() }),
};

async function somethingElse(): Promise<number> {
	const listener = createServer((socket) => {
		socket.on('error', () => undefined);
		socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
	}).listen(0, '127.0.0.1');
	listener.unref();
	await once(listener, 'listening');
	return (listener.address() as AddressInfo).port;
}

describe.each([['wired'], ['not wired']])('with Operational Error %s', (wiring) => {
	test.each(Object.entries(failures))('%s', async (_name, changes) => {
		const store = workbench.credential(await changes());
		const lines = wiring === 'wired' ? undefined : ['Claim -> Action'];
		// The payload is the sender's and stands in the items; it must not stand anywhere else.
		const items = [{ json: { id: 'd1', text: PAYLOAD } }];
		const run = await workbench.run(guarded(claimNode(), lines), { items, credentials: { store } });
		expect(run.ran('Action')).toBe(false);
		expect(run.outputOf('Claim', 2).length > 0 || run.status === 'error').toBe(true);
		const everything = run.everything();
		for (const secret of [PASSWORD, encodeURIComponent(PASSWORD), 'postgresql://keeper']) expect(everything).not.toContain(secret);
		const errors = JSON.stringify([run.outputOf('Claim', 2).map(({ claim }) => claim), run.error, run.error?.stack, run.hintsOf('Claim')]);
		expect(errors).not.toContain(PAYLOAD);
	});
});

test('Complete Claim keeps them too', async () => {
	const workflow = guarded();
	workflow.nodes.Complete = completeNode({}, { credential: 'other' });
	workflow.lines.push('Action -> Complete');
	const other = workbench.credential({ user: 'keeper', password: PASSWORD });
	const run = await workbench.run(workflow, { items: deliveries('d1'), credentials: { other } });
	expect(run.status).toBe('error');
	expect(run.everything()).not.toContain(PASSWORD);
});

test('an expression that fails is not quoted: it may hold the payload', async () => {
	const run = await workbench.run(guarded(claimNode({ deliveryId: `={{ $('No such node').item.json["${PAYLOAD}"] }}` })), { items: deliveries('d1') });
	expect(JSON.stringify(run.outputOf('Claim', 2))).not.toContain(PAYLOAD);
});

test('a handle stands only where a claim was given', async () => {
	await workbench.run(guarded(), { items: deliveries('d1') });
	const run = await workbench.run(guarded(), { items: deliveries('d1', null) });
	expect(run.everything()).not.toContain('claim1.');
});
