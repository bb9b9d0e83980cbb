import { createHash } from 'node:crypto';
import type { ConnectionOptions } from 'node:tls';
import { ClaimError } from '../errors';
import { readCertificates, readPrivateKey, readSshPrivateKey } from './pem';

/** How to reach the claim store, as a person enters it (the credential `claimStoreApi`). */
export interface ClaimStoreCredential {
	connectWith?: 'fields' | 'connectionString';
	connectionString?: string;
	host?: string;
	port?: number;
	database?: string;
	user?: string;
	password?: string;
	/** `require` encrypts without verifying; `verifyFull` checks CA and host name. */
	tls?: TlsMode;
	caCertificate?: string;
	clientCertificate?: string;
	clientKey?: string;
	/** Whether the database is reached through an SSH server; Host and Port are then seen from there. */
	sshTunnel?: boolean;
	sshAuthenticateWith?: 'password' | 'privateKey';
	sshHost?: string;
	sshPort?: number;
	sshUser?: string;
	sshPassword?: string;
	privateKey?: string;
	passphrase?: string;
	schema?: string;
	table?: string;
	/** Whether the table is created and upgraded when needed; otherwise a DBA does it. */
	createTable?: boolean;
	maxConnections?: number;
	/** Milliseconds: longest wait for a connection, for a statement, and for another session's lock on the same key. */
	timeoutMs?: number;
}

export type TlsMode = 'disable' | 'require' | 'verifyFull';

/** The same, checked and complete. */
export interface ConnectionSettings {
	readonly host: string;
	readonly port: number;
	readonly database: string;
	readonly user: string;
	readonly password: string;
	readonly ssl: false | ConnectionOptions;
	/** Server options of a connection string (`options=…`), as some hosted databases want them. */
	readonly options: string | undefined;
	/** The SSH server through which `host` and `port` are reached, if any. */
	readonly tunnel: TunnelSettings | undefined;
	readonly schema: string;
	readonly table: string;
	readonly createTable: boolean;
	readonly maxConnections: number;
	readonly timeoutMs: number;
}

/** How to log in to an SSH server. */
export interface TunnelSettings {
	readonly host: string;
	readonly port: number;
	readonly user: string;
	readonly login: { readonly password: string } | { readonly privateKey: string; readonly passphrase: string | undefined };
}

interface Address {
	host: string;
	port: number;
	database: string;
	user: string;
	password: string;
	tls: TlsMode;
	options?: string;
}

/** PostgreSQL cuts longer names without a word, which could make two tables one. */
const MAX_NAME_BYTES = 63;

/**
 * Checks what was entered and fills in the defaults.
 *
 * @throws ClaimError `store_misconfigured`; its text never holds the password or the connection string
 */
export function readSettings(credential: ClaimStoreCredential): ConnectionSettings {
	for (const [name, value] of TEXTS(credential)) {
		// The driver would fail on it later, and say the value.
		if (value !== undefined && value !== null && typeof value !== 'string') throw misconfigured(`${name} is not a text`, `Correct ${name} in the Claim Store credential; an expression there must give a text.`);
	}
	const address = credential.connectWith === 'connectionString' ? addressFromString(credential) : addressFromFields(credential);
	return {
		host: address.host,
		port: address.port,
		database: address.database,
		user: address.user,
		password: address.password,
		ssl: tlsOptions(address.tls, credential),
		options: address.options,
		tunnel: readTunnel(credential, address),
		schema: readName('Schema', credential.schema, 'public'),
		table: readName('Table', credential.table, 'idempotent_claims'),
		createTable: credential.createTable ?? true,
		maxConnections: readWholeNumber('Maximum Connections', credential.maxConnections, 10, 1, 1000),
		timeoutMs: readWholeNumber('Timeout', credential.timeoutMs, 10_000, 100, 600_000),
	};
}

const TEXTS = (credential: ClaimStoreCredential): Array<[string, unknown]> => [
	['Connection String', credential.connectionString],
	['Host', credential.host],
	['Database', credential.database],
	['User', credential.user],
	['Password', credential.password],
	['CA Certificate', credential.caCertificate],
	['Client Certificate', credential.clientCertificate],
	['Client Key', credential.clientKey],
	['SSH Host', credential.sshHost],
	['SSH User', credential.sshUser],
	['SSH Password', credential.sshPassword],
	['SSH Private Key', credential.privateKey],
	['SSH Key Passphrase', credential.passphrase],
	['Schema', credential.schema],
	['Table', credential.table],
];

/** A text that is equal for equal settings, and from which nothing can be read. */
export function settingsKey(settings: ConnectionSettings): string {
	return createHash('sha256').update(JSON.stringify(settings)).digest('hex');
}

function addressFromFields(credential: ClaimStoreCredential): Address {
	const host = readEntry('Host', credential.host, 'localhost');
	if (!isHostName(host) && !host.startsWith('/')) {
		throw misconfigured('Host is not a host name', 'Fill in only the name or address of the server. For a whole connection string choose Connect With: Connection String.');
	}
	return {
		host,
		port: readWholeNumber('Port', credential.port, 5432, 1, 65_535),
		database: readEntry('Database', credential.database, 'postgres'),
		user: readEntry('User', credential.user, 'postgres'),
		password: credential.password ?? '',
		tls: credential.tls ?? 'disable',
	};
}

/** `sslmode` values and what they mean here; the ones that may fall back to an unencrypted line are refused. */
const SSL_MODES = new Map<string, TlsMode>([
	['disable', 'disable'],
	['require', 'require'],
	['no-verify', 'require'],
	['verify-ca', 'verifyFull'],
	['verify-full', 'verifyFull'],
]);

function addressFromString(credential: ClaimStoreCredential): Address {
	let url: URL;
	let user: string;
	let password: string;
	let database: string;
	let host: string;
	try {
		url = new URL((credential.connectionString ?? '').trim());
		user = decodeURIComponent(url.username);
		password = decodeURIComponent(url.password);
		database = decodeURIComponent(url.pathname.slice(1));
		host = decodeURIComponent(url.hostname).replace(/^\[|\]$/g, '');
		if (holdsMisplacedPassword(url)) throw new Error('The @ stands behind the host');
	} catch {
		// The driver's or URL's own message would repeat the string, password included.
		throw misconfigured(
			'The connection string cannot be read',
			'It looks like postgresql://user:password@host:5432/database. Percent-encode special characters in the password (@ is %40, / is %2F, # is %23), or use Connect With: Fields.',
		);
	}
	if (url.protocol !== 'postgres:' && url.protocol !== 'postgresql:') {
		throw misconfigured('The connection string is not for PostgreSQL', 'It must start with postgresql:// or postgres://.');
	}
	if (!url.hostname) throw misconfigured('The connection string names no host', 'It looks like postgresql://user:password@host:5432/database.');
	const asked = url.searchParams.get('sslmode') ?? sslModeOf(url.searchParams.get('ssl'));
	const publicCas = url.searchParams.get('sslrootcert') === 'system';
	// Whoever names the CAs to trust wants them looked at; PostgreSQL's own clients take it so, too.
	const mode = asked ?? (publicCas ? 'verify-full' : null);
	const tls = mode === null ? (credential.tls ?? 'disable') : SSL_MODES.get(mode);
	if (tls === undefined) {
		throw misconfigured(
			`The connection string has an sslmode that is not supported${/^[a-z-]{1,12}$/.test(mode ?? '') ? ` ("${mode}")` : ''}`,
			'Use sslmode=disable, require, verify-ca or verify-full. The modes allow and prefer may connect without encryption.',
		);
	}
	if (publicCas && tls !== 'verifyFull') {
		throw misconfigured('The connection string asks for sslrootcert=system without verification', 'Use sslmode=verify-full with it, or remove sslrootcert.');
	}
	for (const file of ['sslcert', 'sslkey', 'sslrootcert']) {
		const value = url.searchParams.get(file);
		if (value !== null && value !== 'system') {
			throw misconfigured(`The connection string names a certificate file (${file})`, 'Remove it and paste the certificate itself into the credential.');
		}
	}
	return {
		host,
		port: url.port === '' ? 5432 : Number(url.port),
		database: database === '' ? user || 'postgres' : database,
		user: user === '' ? 'postgres' : user,
		password,
		tls,
		options: url.searchParams.get('options') ?? undefined,
	};
}

/** A password with an unencoded #, / or ? ends the address early: the user then reads as host, and the rest as path. */
function holdsMisplacedPassword(url: URL): boolean {
	return url.hash !== '' || (url.username === '' && `${url.pathname}${url.search}`.includes('@'));
}

/** `ssl=true` as some drivers write it; what it asks for is an encrypted line. */
function sslModeOf(ssl: string | null): string | null {
	if (ssl === null) return null;
	return ({ true: 'require', '1': 'require', false: 'disable', '0': 'disable' } as Record<string, string>)[ssl] ?? ssl;
}

function tlsOptions(mode: TlsMode, credential: ClaimStoreCredential): false | ConnectionOptions {
	if (mode === 'disable') return false;
	if (mode !== 'require' && mode !== 'verifyFull') {
		throw misconfigured('The TLS setting is not one of those offered', 'Choose Disable, Require or Verify Full.');
	}
	const certificate = readCertificates('Client Certificate', credential.clientCertificate);
	const key = readPrivateKey('Client Key', credential.clientKey, certificate);
	if ((certificate === undefined) !== (key === undefined)) {
		throw misconfigured('Only one of Client Certificate and Client Key is filled in', 'Fill in both, or neither.');
	}
	return { rejectUnauthorized: mode === 'verifyFull', ca: readCertificates('CA Certificate', credential.caCertificate), cert: certificate, key };
}

function readTunnel(credential: ClaimStoreCredential, address: Address): TunnelSettings | undefined {
	const wanted: unknown = credential.sshTunnel ?? false;
	// Read strictly: a tunnel that somebody meant must not be left out without a word.
	if (typeof wanted !== 'boolean') throw misconfigured('SSH Tunnel is neither on nor off', 'Correct SSH Tunnel in the Claim Store credential; an expression there must give true or false.');
	if (!wanted) return undefined;
	if (address.host.startsWith('/')) throw misconfigured('Host is the path of a socket, which no SSH tunnel leads to', 'Fill in the name or address of the database as the SSH server sees it, e.g. localhost.');
	const host = readEntry('SSH Host', credential.sshHost, '');
	if (!isHostName(host)) throw misconfigured('SSH Host is not a host name', 'Fill in only the name or address of the SSH server; user and port have fields of their own.');
	return {
		host,
		port: readWholeNumber('SSH Port', credential.sshPort, 22, 1, 65_535),
		user: readEntry('SSH User', credential.sshUser, ''),
		login: readSshLogin(credential),
	};
}

function readSshLogin(credential: ClaimStoreCredential): TunnelSettings['login'] {
	const way = credential.sshAuthenticateWith ?? 'password';
	if (way === 'password') {
		if (!credential.sshPassword) throw misconfigured('SSH Password is empty', 'Fill in SSH Password in the Claim Store credential, or choose SSH Authenticate With: Private Key.');
		return { password: credential.sshPassword };
	}
	if (way !== 'privateKey') throw misconfigured('SSH Authenticate With is not one of those offered', 'Choose Password or Private Key.');
	const privateKey = readSshPrivateKey('SSH Private Key', credential.privateKey);
	if (privateKey === undefined) throw misconfigured('SSH Private Key is empty', 'Fill in SSH Private Key in the Claim Store credential, or choose SSH Authenticate With: Password.');
	return { privateKey, passphrase: credential.passphrase || undefined };
}

function isHostName(text: string): boolean {
	return !/[@/?#]/.test(text);
}

function readEntry(name: string, value: string | undefined, fallback: string): string {
	const text = value ?? fallback;
	if (typeof text !== 'string' || text.trim() === '') throw misconfigured(`${name} is empty`, `Fill in ${name} in the Claim Store credential.`);
	return text.trim();
}

function readName(name: string, value: string | undefined, fallback: string): string {
	const text = value ?? fallback;
	if (typeof text !== 'string' || text === '') throw misconfigured(`${name} is empty`, `Fill in ${name} in the Claim Store credential, e.g. ${fallback}.`);
	if (Buffer.byteLength(text) > MAX_NAME_BYTES || text.includes('\0')) {
		throw misconfigured(`${name} is not a name that PostgreSQL can hold`, `Use at most ${MAX_NAME_BYTES} bytes.`);
	}
	return text;
}

function readWholeNumber(name: string, value: number | undefined, fallback: number, least: number, most: number): number {
	// A secret or an expression gives digits as text.
	const number = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : (value ?? fallback);
	if (!Number.isInteger(number) || number < least || number > most) {
		throw misconfigured(`${name} must be a whole number from ${least} to ${most}`, `Correct ${name} in the Claim Store credential.`);
	}
	return number;
}

function misconfigured(message: string, hint: string): ClaimError {
	return new ClaimError('store_misconfigured', message, { hint });
}
