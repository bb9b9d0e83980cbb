import { readSettings, settingsKey, type ClaimStoreCredential } from '../../store/connection/settings';
import { ClaimError } from '../../store/errors';

/** What the credential `claimStoreApi` says, checked and complete. */

const fromString = (connectionString: string, more: ClaimStoreCredential = {}) => readSettings({ connectWith: 'connectionString', connectionString, ...more });

function failureOf(read: () => unknown): ClaimError {
	try {
		read();
	} catch (failure) {
		if (failure instanceof ClaimError) return failure;
		throw new Error(`Not a ClaimError: ${String(failure)}`);
	}
	throw new Error('Not refused');
}

/** Everything that could reach an item or a log. */
const allTextOf = (error: ClaimError) => JSON.stringify({ ...error, message: error.message, stack: error.stack, cause: error.cause });

/** Of nobody, valid for a hundred years. */
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBbzCCARWgAwIBAgIUJAV8SY6qddQvbxO095CEwON5ryUwCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBYTAgFw0yNjEyMDEwNDAwMzZaGA8yMTI2MTEwNzA0MDAzNlow
DDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABIH8fExs5nys
lmj61utbNthEpp9zDdMPGIY5u0JYejcRb/t2B4tEioTgz3lXf2oj/vCFiW0fkwmE
xN6gT1cAdBGjUzBRMB0GA1UdDgQWBBRKdNP2r3GSjRdoX6cLLZOn5n9evjAfBgNV
HSMEGDAWgBRKdNP2r3GSjRdoX6cLLZOn5n9evjAPBgNVHRMBAf8EBTADAQH/MAoG
CCqGSM49BAMCA0gAMEUCIATPDtebQfm927hgRg9CU3seyI5OiWyqi3NpulVpgLLU
AiEAm9o+wRUzedN33lIYWHq27JH1c4XFUy31RXcBgaHZ4mQ=
-----END CERTIFICATE-----
`;

describe('fields', () => {
	test('have defaults', () => {
		expect(readSettings({})).toEqual({
			host: 'localhost',
			port: 5432,
			database: 'postgres',
			user: 'postgres',
			password: '',
			ssl: false,
			options: undefined,
			schema: 'public',
			table: 'idempotent_claims',
			createTable: true,
			maxConnections: 10,
			timeoutMs: 10_000,
		});
	});

	test('are taken as they are, passwords to the byte', () => {
		expect(readSettings({ host: 'db', port: 6543, database: 'n8n', user: 'me', password: ' p@:/%41 ', schema: 'My "Schema"', table: 'tábla', createTable: false })).toMatchObject({
			host: 'db',
			port: 6543,
			database: 'n8n',
			user: 'me',
			password: ' p@:/%41 ',
			schema: 'My "Schema"',
			table: 'tábla',
			createTable: false,
		});
	});

	test.each<[string, ClaimStoreCredential]>([
		['no host', { host: '' }],
		['a host of spaces', { host: '  ' }],
		['no database', { database: '' }],
		['no user', { user: '' }],
		['no schema', { schema: '' }],
		['no table', { table: '' }],
		['a table name that PostgreSQL would cut', { table: 'x'.repeat(64) }],
		['a table name that PostgreSQL would cut in bytes', { table: 'é'.repeat(32) }],
		['NUL in a name', { schema: 'a\0b' }],
		['port 0', { port: 0 }],
		['a port too high', { port: 65_536 }],
		['half a connection', { maxConnections: 1.5 }],
		['no connection', { maxConnections: 0 }],
		['no time', { timeoutMs: 0 }],
		['a port that is no number', { port: 'five' as never }],
		['a password that is a number', { password: 12345678 as never }],
		['a host that is a connection string', { host: 'postgresql://me:S3cret!@db:5432/claims' }],
		['an unknown TLS mode', { tls: 'prefer' as never }],
		['a client certificate without its key', { tls: 'require', clientCertificate: CERTIFICATE }],
		['a client key without its certificate', { tls: 'verifyFull', clientKey: CERTIFICATE }],
	])('refused: %s', (_what, credential) => {
		const error = failureOf(() => readSettings({ password: 'S3cret!', ...credential }));
		expect(error).toMatchObject({ kind: 'store_misconfigured', retryable: false, hint: expect.stringMatching(/./) as string });
		expect(allTextOf(error)).not.toContain('S3cret!');
	});
});

describe('TLS', () => {
	test.each([
		['disable', false],
		['require', { rejectUnauthorized: false }],
		['verifyFull', { rejectUnauthorized: true }],
	] as const)('%s', (tls, ssl) => {
		const read = readSettings({ tls });
		if (ssl) expect(read.ssl).toMatchObject(ssl);
		else expect(read.ssl).toBe(false);
	});

	test('certificates may be pasted with any line ends, or out of JSON', () => {
		for (const pasted of [CERTIFICATE, CERTIFICATE.replace(/\n/g, '\r\n'), CERTIFICATE.replace(/\n/g, '\\n'), `\n\n${CERTIFICATE.trim()}  `]) {
			expect(readSettings({ tls: 'verifyFull', caCertificate: pasted }).ssl).toMatchObject({ ca: CERTIFICATE, cert: undefined, key: undefined });
		}
	});
});

describe('a connection string', () => {
	test('gives everything', () => {
		expect(fromString('postgresql://me:secret@db.example.com:6543/n8n')).toMatchObject({ host: 'db.example.com', port: 6543, database: 'n8n', user: 'me', password: 'secret', ssl: false });
	});

	test.each([
		['postgres://me:x@db', { host: 'db', port: 5432, database: 'me', user: 'me' }],
		['postgres://db/claims', { host: 'db', database: 'claims', user: 'postgres', password: '' }],
		['  postgresql://me@db/claims\n', { host: 'db', user: 'me', database: 'claims' }],
		['postgresql://me:x@[2001:db8::1]:6543/claims', { host: '2001:db8::1', port: 6543 }],
		['postgresql://me:x@[::1]/claims', { host: '::1', port: 5432 }],
		['postgresql://me:x@DB.Example.com/Claims', { database: 'Claims' }],
		['postgresql://a%40b:p%40%3A%2F%23%3F%25%C3%A9@db/my%20claims', { user: 'a@b', password: 'p@:/#?%é', database: 'my claims' }],
		['postgresql://me.project:x@pooler.example.com:6543/postgres', { user: 'me.project' }],
		['postgresql://me:x@db/claims?options=-c%20search_path%3Dapp', { options: '-c search_path=app' }],
		['postgresql://me:x@db/claims?options=endpoint%3Dep-quiet', { options: 'endpoint=ep-quiet' }],
		['postgresql://me:x@db/claims?sslmode=require&channel_binding=require', { host: 'db' }],
	])('%s', (text, settings) => {
		expect(fromString(text)).toMatchObject(settings);
	});

	test.each([
		['disable', false],
		['require', { rejectUnauthorized: false }],
		['no-verify', { rejectUnauthorized: false }],
		['verify-ca', { rejectUnauthorized: true }],
		['verify-full', { rejectUnauthorized: true }],
	])('sslmode=%s wins over the field', (mode, ssl) => {
		for (const tls of ['disable', 'require', 'verifyFull'] as const) {
			const read = fromString(`postgresql://me:x@db/claims?sslmode=${mode}`, { tls, caCertificate: CERTIFICATE });
			if (ssl) expect(read.ssl).toMatchObject({ ...(ssl as object), ca: CERTIFICATE });
			else expect(read.ssl).toBe(false);
		}
	});

	test('without sslmode the field counts', () => {
		expect(fromString('postgresql://me:x@db/claims', { tls: 'verifyFull' }).ssl).toMatchObject({ rejectUnauthorized: true });
	});

	test.each([
		['', 'cannot be read'],
		['db.example.com', 'cannot be read'],
		['host=db user=me password=S3cret!', 'cannot be read'],
		['postgresql://me:S3cret!@/claims', ''],
		['postgresql:///claims', 'names no host'],
		['postgresql://me:S3cret!@db:99999/claims', 'cannot be read'],
		['postgresql://me:S3cret!@db:port/claims', 'cannot be read'],
		['postgresql://me:S3cret!%@db/claims', 'cannot be read'],
		['postgresql://me:S3cret!@db%zz/claims', 'cannot be read'],
		['mysql://me:S3cret!@db/claims', 'not for PostgreSQL'],
		['https://me:S3cret!@db/claims', 'not for PostgreSQL'],
		['postgresql://me:S3cret!@db/claims?sslmode=prefer', 'sslmode that is not supported ("prefer")'],
		['postgresql://me:S3cret!@db/claims?sslmode=allow', 'sslmode that is not supported'],
		['postgresql://me:S3cret!@db/claims?sslmode=', 'sslmode that is not supported'],
		['postgresql://me:S3cret!@db/claims?sslmode=Require', 'sslmode that is not supported'],
		['postgresql://me:S3cret!@db/claims?sslrootcert=/etc/ca.pem', 'certificate file (sslrootcert)'],
		['postgresql://me:S3cret!@db/claims?sslcert=/c.pem&sslkey=/k.pem', 'certificate file (sslcert)'],
		['postgresql://me:S3cret!@db/claims?sslkey=/k.pem', 'certificate file (sslkey)'],
	])('refused without repeating it: %s', (text, message) => {
		const error = failureOf(() => fromString(text));
		expect(error).toMatchObject({ kind: 'store_misconfigured', message: expect.stringContaining(message) as string });
		expect(allTextOf(error)).not.toContain('S3cret!');
	});

	// A # or / in a password that was not percent-encoded makes the user a host, and the password's first digits its port.
	test.each(['postgresql://me:8472#rest@db/claims', 'postgresql://me:8472/rest@db/claims', 'postgresql://me:8472?rest@db/claims'])(
		'refused, not misread, when the password is not encoded: %s',
		(text) => {
			const error = failureOf(() => fromString(text));
			expect(allTextOf(error)).not.toContain('8472');
		},
	);

	// Some drivers and hosts write ssl=true: an encrypted line was asked for, so none without may be opened.
	test('ssl=true is not ignored', () => {
		let ssl: unknown;
		try {
			ssl = fromString('postgresql://me:x@db/claims?ssl=true').ssl;
		} catch (failure) {
			expect(failure).toBeInstanceOf(ClaimError);
			return;
		}
		expect(ssl).not.toBe(false);
	});
});

describe('the key of settings', () => {
	test('is equal for equal settings, differs with each, and shows nothing', () => {
		const base: ClaimStoreCredential = { host: 'db', password: 'S3cret!', tls: 'require' };
		const key = settingsKey(readSettings(base));
		expect(settingsKey(readSettings({ ...base }))).toBe(key);
		expect(key).toMatch(/^[0-9a-f]{64}$/);
		const changes: ClaimStoreCredential[] = [
			{ host: 'db2' },
			{ port: 1 },
			{ database: 'x' },
			{ user: 'x' },
			{ password: 'x' },
			{ tls: 'verifyFull' },
			{ caCertificate: CERTIFICATE },
			{ schema: 'x' },
			{ table: 'x' },
			{ createTable: false },
			{ maxConnections: 1 },
			{ timeoutMs: 500 },
		];
		expect(new Set([key, ...changes.map((change) => settingsKey(readSettings({ ...base, ...change })))]).size).toBe(changes.length + 1);
	});
});
