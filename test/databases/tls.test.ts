import { chown, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { openClaimStore } from '../../store/claimStore';
import { readSettings, type ClaimStoreCredential } from '../../store/connection/settings';
import { ClaimError } from '../../store/errors';
import { anOwner, aRequest, inShort } from '../store/support/claims';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { startOwnPostgres, type OwnPostgres } from '../support/ownPostgres';
import { EXPIRED, makeAuthority, makeSelfSigned, type Authority, type Certificate } from './support/certificates';
import { documentedTable } from './support/documentedTable';
import { pressTest } from './support/site';

/** Every cell of the tables in docs/connecting.md, tried against a real PostgreSQL. */

const USER = 'tls_user';
const PASSWORD = 'hunter2-S3cret';
const HBA = {
	free: 'host all all 127.0.0.1/32 scram-sha-256',
	tlsOnly: `hostnossl all ${USER} 127.0.0.1/32 reject\nhost all all 127.0.0.1/32 scram-sha-256`,
};

let postgres: OwnPostgres;
let database: TestDatabase;
let folder: string;
let owner: { uid: number; gid: number };
let usualHba: string;
let own: Authority;
let other: Authority;
let selfSigned: Certificate;
let good: Certificate;
let withAddress: Certificate;
let elsewhere: Certificate;
let expired: Certificate;
let client: { mine: Certificate; others: Certificate; untrusted: Certificate };

beforeAll(async () => {
	postgres = await startOwnPostgres();
	database = await createTestDatabase(postgres);
	const [{ data_directory: data }] = await database.query<{ data_directory: string }>('SHOW data_directory');
	folder = data;
	owner = await stat(folder);
	usualHba = await readFile(path.join(folder, 'pg_hba.conf'), 'utf8');
	await database.query(`CREATE ROLE ${USER} LOGIN PASSWORD '${PASSWORD}'`);
	await database.query(`GRANT CREATE ON SCHEMA public TO ${USER}`);

	[own, other] = [await makeAuthority('Own CA'), await makeAuthority('Another CA')];
	selfSigned = await makeSelfSigned(['localhost']);
	good = await own.forServer(['localhost']);
	withAddress = await own.forServer(['db.example.com', '127.0.0.1']);
	elsewhere = await own.forServer(['db.example.com']);
	expired = await own.forServer(['localhost'], EXPIRED);
	client = { mine: await own.forClient(USER), others: await own.forClient('somebody_else'), untrusted: await other.forClient(USER) };
});
afterAll(async () => {
	await database?.drop();
	await postgres?.remove();
});

/** What the server has to show, and whom it lets in; null: no TLS. */
async function serve(certificate: Certificate | null, hba: string = HBA.free): Promise<void> {
	await put('server.crt', certificate?.certificate ?? '');
	await put('server.key', certificate?.key ?? '');
	await put('root.crt', own.certificate);
	// The owner's own connection is for the test itself, whatever is tried.
	await put('pg_hba.conf', `host all ${postgres.user} 127.0.0.1/32 password\n${hba}\n${usualHba}`);
	const settings = certificate
		? { ssl: 'on', ssl_cert_file: 'server.crt', ssl_key_file: 'server.key', ssl_ca_file: 'root.crt' }
		: { ssl: 'off' };
	for (const [name, value] of Object.entries(settings)) await database.query(`ALTER SYSTEM SET ${name} = '${value}'`);
	const loadTime = async () => String((await database.query<{ at: string }>('SELECT pg_conf_load_time()::text AS at'))[0].at);
	const before = await loadTime();
	await database.query('SELECT pg_reload_conf()');
	// The server tells its sessions of the reload while it does it, and accepts nobody meanwhile.
	while ((await loadTime()) === before);
}

async function put(name: string, text: string): Promise<void> {
	const file = path.join(folder, name);
	await writeFile(file, text, { mode: 0o600 });
	await chown(file, owner.uid, owner.gid);
}

const fields = (changes: ClaimStoreCredential): ClaimStoreCredential => ({ host: 'localhost', port: postgres.port, database: database.database, user: USER, password: PASSWORD, timeoutMs: 10_000, ...changes });

/** In the words of the tables: one claim, and how its line is encrypted by the server's own account. */
async function connect(credential: ClaimStoreCredential): Promise<string> {
	let store;
	try {
		store = openClaimStore(readSettings(credential));
	} catch (failure) {
		return `refused: ${checked(failure, credential)}`;
	}
	try {
		const [answer] = await store.claim('claim', anOwner(), [aRequest()]);
		if (answer.verdict === 'error') {
			const said = checked(answer.error, credential);
			// The credential test says the same.
			const test = await pressTest(credential as never);
			expect(test).toMatchObject({ status: 'Error' });
			expect(test.message).toContain(answer.error.hint);
			return `refused: ${said}`;
		}
		expect(inShort(answer)).toBe('new first_delivery');
		const lines = await database.query<{ ssl: boolean }>('SELECT DISTINCT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.usename = $1', [USER]);
		expect(lines).toHaveLength(1);
		return lines[0].ssl ? 'encrypted' : 'not encrypted';
	} finally {
		await store.close();
		while ((await database.query('SELECT FROM pg_stat_activity WHERE usename = $1', [USER])).length > 0);
	}
}

/** The message of a refusal that needs somebody to change something, and that tells no secret. */
function checked(failure: unknown, credential: ClaimStoreCredential): string {
	if (!(failure instanceof ClaimError)) throw failure;
	expect(failure).toMatchObject({ kind: expect.stringMatching(/^store_(misconfigured|denied)$/) as string, retryable: false, hint: expect.stringMatching(/\w/) as string });
	const text = JSON.stringify({ ...failure, message: failure.message, stack: failure.stack, cause: failure.cause });
	for (const secret of [PASSWORD, ...secretLines(credential.clientKey), ...secretLines(credential.caCertificate)]) expect(text).not.toContain(secret);
	return failure.message;
}

const secretLines = (pasted = '') => pasted.split(/\s+/).filter((line) => line.length > 40);

/** Whether what happened is what a cell says: a refusal's cell is a part of its message. */
function expectCell(happened: string, cell: string): void {
	const [verdict, reason] = cell.split(': ');
	if (reason === undefined) expect(happened).toBe(cell);
	else {
		expect(happened.slice(0, verdict.length + 2)).toBe(`${verdict}: `);
		expect(happened).toContain(reason);
	}
}

describe('TLS in the credential', () => {
	const CREDENTIALS: Record<string, () => ClaimStoreCredential> = {
		Disable: () => ({ tls: 'disable' }),
		Require: () => ({ tls: 'require' }),
		'Require, own CA filled in': () => ({ tls: 'require', caCertificate: own.certificate }),
		'Verify Full, no CA filled in': () => ({ tls: 'verifyFull' }),
		'Verify Full, own CA': () => ({ tls: 'verifyFull', caCertificate: own.certificate }),
		'Verify Full, another CA': () => ({ tls: 'verifyFull', caCertificate: other.certificate }),
		'Verify Full, both CAs in one text': () => ({ tls: 'verifyFull', caCertificate: other.certificate + own.certificate }),
		'Verify Full, own CA, Host is the IP address': () => ({ tls: 'verifyFull', caCertificate: own.certificate, host: '127.0.0.1' }),
		"Verify Full, the server's own certificate as CA": () => ({ tls: 'verifyFull', caCertificate: selfSigned.certificate + expired.certificate }),
	};
	const SERVERS: Record<string, () => Promise<void>> = {
		'no TLS': async () => await serve(null),
		'TLS only': async () => await serve(good, HBA.tlsOnly),
		'signed by own CA': async () => await serve(good),
		'for another host name': async () => await serve(elsewhere),
		'self-signed': async () => await serve(selfSigned),
		expired: async () => await serve(expired),
	};
	const { header, rows } = documentedTable('connecting.md', 'tls');

	test('the page names every server and every credential that is tried', () => {
		expect(header.slice(1)).toEqual(Object.keys(SERVERS));
		expect(rows.map(([name]) => name)).toEqual(Object.keys(CREDENTIALS));
	});

	describe.each(header.slice(1))('server: %s', (server) => {
		beforeAll(async () => await SERVERS[server]());
		test.each(rows.map((row): [string, string] => [row[0], row[header.indexOf(server)]]))('%s: %s', async (name, cell) => {
			expectCell(await connect(fields(CREDENTIALS[name]())), cell);
		});
	});

	test('an IP address under Host is verified against the addresses in the certificate', async () => {
		await serve(withAddress);
		expect(await connect(fields({ tls: 'verifyFull', caCertificate: own.certificate, host: '127.0.0.1' }))).toBe('encrypted');
	});
});

describe('client certificates', () => {
	const CREDENTIALS: Record<string, () => ClaimStoreCredential> = {
		'no certificate': () => ({}),
		'for this user': () => withClient(client.mine),
		'for another user': () => withClient(client.others),
		'for this user, by a CA that the server does not trust': () => withClient(client.untrusted),
	};
	const withClient = ({ certificate, key }: Certificate): ClaimStoreCredential => ({ clientCertificate: certificate, clientKey: key });
	const { header, rows } = documentedTable('connecting.md', 'client certificates');

	test('the page names every credential that is tried', () => {
		expect(rows.map(([name]) => name)).toEqual(Object.keys(CREDENTIALS));
	});

	describe.each(header.slice(1))('pg_hba.conf: %s', (method) => {
		beforeAll(async () => await serve(good, `hostssl all ${USER} 127.0.0.1/32 ${method}`));
		test.each(rows.map((row): [string, string] => [row[0], row[header.indexOf(method)]]))('%s: %s', async (name, cell) => {
			expectCell(await connect(fields({ tls: 'verifyFull', caCertificate: own.certificate, ...CREDENTIALS[name]() })), cell);
		});
	});

	test.each<[string, () => ClaimStoreCredential, string]>([
		['a key of another certificate', () => ({ clientCertificate: client.mine.certificate, clientKey: client.others.key }), 'does not belong to the certificate'],
		['a key under a passphrase', () => ({ clientCertificate: client.mine.certificate, clientKey: client.mine.key.replaceAll('PRIVATE KEY', 'ENCRYPTED PRIVATE KEY') }), 'protected by a passphrase'],
		['a certificate in the place of the key', () => ({ clientCertificate: client.mine.certificate, clientKey: client.mine.certificate }), 'holds no private key'],
		['a key that is cut off', () => ({ clientCertificate: client.mine.certificate, clientKey: client.mine.key.replace(/\n.{20}/, '\n') }), 'cannot be read as a private key'],
	])('%s is refused before anything is sent', async (_what, credential, message) => {
		expect(await connect(fields({ tls: 'require', ...credential() }))).toContain(message);
	});

	test('a key works in one line, too', async () => {
		await serve(good, `hostssl all ${USER} 127.0.0.1/32 cert`);
		const { certificate, key } = client.mine;
		expect(await connect(fields({ tls: 'require', clientCertificate: certificate.replace(/\n/g, ' '), clientKey: key.replace(/\n/g, '') }))).toBe('encrypted');
	});
});

describe('a CA as it is pasted', () => {
	const PASTED: Record<string, (ca: string) => string> = {
		'as it is in the file': (ca) => ca,
		'with Windows line ends (CRLF)': (ca) => ca.replace(/\n/g, '\r\n'),
		'with \\n for each line end, as in JSON': (ca) => ca.replace(/\n/g, '\\n'),
		'with \\r\\n for each line end, as in JSON': (ca) => ca.replace(/\n/g, '\\r\\n'),
		'in one line, spaces for line ends': (ca) => ca.replace(/\n/g, ' '),
		'in one line, no line ends at all': (ca) => ca.replace(/\n/g, ''),
		'with white space around': (ca) => `\n\t ${ca.replace(/^/gm, '  ')} \n`,
		'with explanations between the certificates, as in a bundle': (ca) => `Another CA: made for a test\n=====\n${other.certificate}\n# Own CA\n${ca}`,
		'the name of a file': () => '/etc/ssl/certs/own-ca.pem',
		'only the lines between BEGIN and END': (ca) => ca.split('\n').slice(1, -2).join('\n'),
		'half of it': (ca) => ca.slice(0, ca.length / 2),
		'with a character missing in the middle': (ca) => ca.slice(0, 100) + ca.slice(101),
		'the private key instead': () => own.key,
	};
	const { rows } = documentedTable('connecting.md', 'pasting');
	beforeAll(async () => await serve(good));

	test('the page names every way that is tried', () => {
		expect(rows.map(([name]) => name)).toEqual(Object.keys(PASTED));
	});

	test.each(rows)('%s: %s', async (name, cell) => {
		expectCell(await connect(fields({ tls: 'verifyFull', caCertificate: PASTED[name](own.certificate) })), cell === 'works' ? 'encrypted' : cell);
	});
});

describe('sslmode in the connection string', () => {
	const { rows } = documentedTable('connecting.md', 'sslmode');
	/** How each choice is told from the others: by three servers, and this credential. */
	const TOLD_BY: Record<string, string[]> = {
		Disable: ['not encrypted', 'not encrypted'],
		Require: ['encrypted', 'encrypted'],
		'Verify Full': ['encrypted', 'refused: another host name'],
		'the choice under TLS': ['encrypted', 'refused: another host name'],
	};
	const outcomes = new Map<string, string[]>();

	beforeAll(async () => {
		for (const certificate of [good, elsewhere]) {
			await serve(certificate);
			for (const [query] of rows) {
				const address = `postgresql://${USER}:${PASSWORD}@localhost:${postgres.port}/${database.database}`;
				const connectionString = query === 'nothing' ? address : `${address}?${query}`;
				// The field says the opposite of most, so that what the string says is seen to win.
				const tls = /verify/.test(query) ? 'disable' : 'verifyFull';
				outcomes.set(query, [...(outcomes.get(query) ?? []), await connect({ connectWith: 'connectionString', connectionString, tls, caCertificate: own.certificate, timeoutMs: 10_000 })]);
			}
		}
	}, 120_000);

	test.each(rows)('%s: %s', (query, cell) => {
		const expected = TOLD_BY[cell] ?? [cell, cell];
		expected.forEach((one, index) => expectCell(outcomes.get(query)?.[index] ?? '', one));
	});
});
