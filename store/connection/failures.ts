import { ClaimError, type ErrorKind } from '../errors';
import type { ConnectionSettings } from './settings';

/**
 * What a failure of the driver or the server means. Judged by SQLSTATE and error code as text, never by class:
 * two copies of the driver may be loaded in one process.
 */

/** The server refused the statement and said so: it has certainly not been carried out. */
export function isRefusal(failure: unknown): boolean {
	const { code, severity } = describe(failure);
	if (!isSqlState(code) || severity === undefined) return false;
	return !ENDS_THE_SESSION.test(code);
}

/**
 * The session ended, possibly after the commit and before its answer: connection exceptions, a server that stops or
 * crashes, time-outs of sessions and transactions, internal errors. Told by SQLSTATE: the word FATAL is translated.
 */
const ENDS_THE_SESSION = /^(?:08|57P|25P0[34]|XX)/;

/** Refused because of other transactions; the same statement may succeed at once. */
export function isSafeToRepeat(failure: unknown): boolean {
	const { code } = describe(failure);
	return code === '40001' || code === '40P01';
}

/**
 * The session does not have a prepared statement that was prepared in it, or has it already: a pooler stands between, which hands sessions
 * round. Or the statement must be parsed anew, because the table has changed. Said before anything is carried out.
 */
export function isPreparedElsewhere(failure: unknown): boolean {
	const { code } = describe(failure);
	return code === '26000' || code === '42P05' || code === '0A000';
}

/** Another session's lock was waited for in vain. */
export function isHeldByAnother(failure: unknown): boolean {
	return failure instanceof ClaimError && failure.sqlState === '55P03';
}

export function sqlStateOf(failure: unknown): string | undefined {
	const { code } = describe(failure);
	return isSqlState(code) ? code : undefined;
}

/** Why no connection could be had. */
export function connectionFailure(failure: unknown, settings: ConnectionSettings): ClaimError {
	if (failure instanceof ClaimError) return failure;
	// The pool puts an error of its own around what a connection waited for when its time was over.
	if (failure instanceof Error && failure.cause instanceof ClaimError) return failure.cause;
	const { code, message } = describe(failure);
	const place = `${settings.host}:${settings.port}`;
	if (isSqlState(code)) return serverRefusedConnection(code, message, settings);
	// The driver itself ends a login for which it has no password.
	if (message.startsWith('SASL')) return loginRefused(settings, 'the server asks for a password');
	if (isTlsFailure(code, message)) {
		return new ClaimError('store_misconfigured', `The encrypted connection to ${place} failed: ${tlsReason(code, message)}`, {
			hint: 'Check TLS in the Claim Store credential: Verify Full needs the CA that signed the server\'s certificate and the host name that is in it; choose Disable only if the server has no TLS.',
		});
	}
	if (settings.tunnel) {
		return new ClaimError('store_unreachable', `No connection to PostgreSQL at ${place} through the SSH server (${networkReason(code)})`, { hint: SEEN_FROM_THERE });
	}
	return new ClaimError('store_unreachable', `No connection to PostgreSQL at ${place} (${networkReason(code)})`, {
		hint: 'Check that the server is running and that host and port are right. In Docker, use the service\'s name, not localhost.',
	});
}

/** What a refused statement means; `failure` must be a refusal. */
export function statementFailure(failure: unknown, settings: ConnectionSettings): ClaimError {
	const { code = '', message } = describe(failure);
	const table = `"${settings.schema}"."${settings.table}"`;
	const make = (kind: ErrorKind, text: string, hint: string, retryable?: boolean) => new ClaimError(kind, text, { hint, sqlState: code, retryable });

	switch (code) {
		case '42501':
			return make('store_denied', `The database user "${settings.user}" may not do this to ${table}: ${message}`, 'Grant SELECT, INSERT and UPDATE on the table and USAGE on its schema, and check its row-level security. To let the package create the table, grant CREATE on the schema too (PostgreSQL 15 and newer withhold it on public).');
		case '42P01':
			return make('store_misconfigured', `The table ${table} does not exist`, settings.createTable ? 'It was dropped or renamed since this n8n process first used it; a new one would know none of the earlier deliveries. Put it back, or restart n8n to have it made anew.' : 'Create Table is off in the credential: ask the DBA to run the SQL that the package ships (claim-table.sql).');
		case '3F000':
			return make('store_misconfigured', `The schema "${settings.schema}" does not exist`, 'Create it, or correct Schema in the Claim Store credential.');
		case '42703':
			return make('store_misconfigured', `The table ${table} lacks a column of this version: ${message}`, 'Run the SQL that the package ships (claim-table.sql), or choose another table name.');
		case '42P10':
			return make('store_misconfigured', `The table ${table} lacks its primary key`, 'It needs PRIMARY KEY (delivery_id, source, account, action, environment); without it every copy of a delivery would be new.');
		case '25006':
			return make('store_misconfigured', 'The server is read-only (a standby, or default_transaction_read_only is on)', 'Point the Claim Store credential at the primary server.');
		case '23505':
			return make('store_misconfigured', `Another unique key of ${table} refused the claim`, 'Remove unique indexes other than the primary key from the table, or a trigger that raises this error.');
		case '0A000':
		case '55000':
		case '22001':
			return make('store_misconfigured', `The table ${table} is not as this version needs it: ${message}`, 'A rule, a deferrable key or a column of a limited length stands in the way. Run the credential test; it says which.');
		case '55P03':
			return make('store_busy', 'Another session holds this key and has not finished', 'Nothing was written for this item; it can be tried again later. If it stays so, look for an open transaction on the claim table.');
		case '57014':
			return make('store_busy', 'The server cancelled the statement', 'Nothing was written for this item; it can be tried again later. Check statement_timeout on the server.');
		case '53100':
			return make('store_busy', 'The database server has no disk space left', 'Free disk space on the database server, then try again.');
	}
	switch (code.slice(0, 2)) {
		case '40':
			return make('store_busy', 'The statement kept losing against other transactions', 'Nothing was written for this item; it can be tried again later.');
		case '53':
			return make('store_busy', 'The database server is out of resources', 'Nothing was written for this item; it can be tried again later.');
		case '23':
			return make('store_misconfigured', `A constraint of ${table} refused the claim`, 'Remove constraints that the package did not create.');
		case '42':
			return make('store_misconfigured', `The table ${table} is not as this version needs it: ${message}`, 'Run the credential test; it says what is wrong.');
		default:
			// The text of other errors (of values, of triggers) may repeat data.
			return make('unexpected', `PostgreSQL refused the statement (SQLSTATE ${code})`, 'Look into the server\'s log for this SQLSTATE.');
	}
}

function serverRefusedConnection(code: string, message: string, settings: ConnectionSettings): ClaimError {
	const place = `${settings.host}:${settings.port}`;
	if (code.startsWith('28')) return loginRefused(settings, message, code);
	if (code === '08P01') return poolerRefusedConnection(code, message, settings);
	if (code === '3D000') {
		return new ClaimError('store_misconfigured', `The server at ${place} has no database "${settings.database}"`, {
			hint: 'Create it, or correct Database in the Claim Store credential.',
			sqlState: code,
		});
	}
	if (code === '53300') {
		return new ClaimError('store_busy', `The server at ${place} has no connection to spare`, {
			hint: 'Lower Maximum Connections in the credential (it counts per n8n process), raise max_connections, or use a pooler.',
			sqlState: code,
		});
	}
	return new ClaimError('store_unreachable', `The server at ${place} does not accept connections: ${message}`, {
		hint: 'It may be starting, stopping or restoring; try again later.',
		sqlState: code,
	});
}

/** PgBouncer has one SQLSTATE for nearly everything; its words, which are never translated, tell what it means. */
function poolerRefusedConnection(code: string, message: string, settings: ConnectionSettings): ClaimError {
	const place = `${settings.host}:${settings.port}`;
	const make = (kind: ErrorKind, text: string, hint: string, sqlState?: string) => new ClaimError(kind, text, { hint, sqlState });

	if (/^unsupported startup parameter/.test(message)) {
		return make('store_misconfigured', `The pooler at ${place} refuses a setting of the connection: ${message}`, 'Remove options=… from the connection string, or have PgBouncer ignore it (ignore_startup_parameters = options).', code);
	}
	if (/authentication failed|^no such user|^not allowed/.test(message)) return loginRefused(settings, message, code);
	if (/^(?:SSL|TLS)\b.*\brequired/.test(message)) return loginRefused(settings, message, code);
	if (/^no such database|^database .* does not exist/.test(message)) {
		return make('store_misconfigured', `The pooler at ${place} knows no database "${settings.database}"`, 'Correct Database in the Claim Store credential, or add it to PgBouncer\'s [databases].', code);
	}
	if (/max_client_conn/.test(message)) {
		// Without a SQLSTATE: it concerns all items alike, and they need not be tried one by one.
		return make('store_busy', `The pooler at ${place} has no connection to spare: ${message}`, 'Lower Maximum Connections in the credential (it counts per n8n process), or raise max_client_conn of PgBouncer.');
	}
	if (/^query_wait_timeout|server_login_retry|server down|^pgbouncer cannot connect|^server login failed/.test(message)) {
		return make('store_unreachable', `The pooler at ${place} has no connection to PostgreSQL: ${message}`, 'Check that PostgreSQL behind the pooler is running and has connections to spare, and that the pooler may log in there.', code);
	}
	return make('store_unreachable', `The server or pooler at ${place} does not accept connections: ${message}`, 'It may be starting or stopping; try again later. If it stays so, look into its log.', code);
}

function loginRefused(settings: ConnectionSettings, reason: string, sqlState?: string): ClaimError {
	return new ClaimError('store_denied', `The server at ${settings.host}:${settings.port} refused the login of "${settings.user}": ${reason}`, {
		hint: loginHint(reason, settings),
		sqlState,
	});
}

function loginHint(reason: string, { ssl }: ConnectionSettings): string {
	const holdsCertificate = ssl !== false && ssl.cert !== undefined;
	if (/certificate/i.test(reason)) return 'The server wants a client certificate: fill in Client Certificate and Client Key; its name (CN) must be the user\'s, and the CA that signed it must be one that the server trusts.';
	const unencrypted = !ssl && /no encryption|SSL off|\brequired/.test(reason) ? ' The server may want an encrypted connection: then choose Require or Verify Full under TLS.' : '';
	const otherName = holdsCertificate ? ' A client certificate must have the user as its name (CN).' : '';
	return `Check user and password in the Claim Store credential, and the server's pg_hba.conf.${unencrypted}${otherName} Hosted databases behind a pooler may want a user name such as user.project.`;
}

const NETWORK_REASONS: Readonly<Record<string, string>> = {
	ECONNREFUSED: 'nothing listens there',
	ENOTFOUND: 'the host name is not known',
	EAI_AGAIN: 'the host name could not be looked up',
	EHOSTUNREACH: 'there is no way to that host',
	ENETUNREACH: 'there is no way to that network; the host may have only an IPv6 address',
	ETIMEDOUT: 'no answer in time',
	ECONNRESET: 'the line was cut',
	EPIPE: 'the line was cut',
};

/** What to look at when the database is not reached from where an SSH tunnel ends. */
export const SEEN_FROM_THERE = 'Host and Port are seen from the SSH server (localhost is the SSH server itself): check that they are right there, that the database runs, and that its firewall lets the SSH server in.';

/** Why a server is not reached, by the operating system's code. */
export function networkReason(code: string | undefined): string {
	return (code !== undefined && NETWORK_REASONS[code]) || 'no answer in time, or the line was cut';
}

function isTlsFailure(code: string | undefined, message: string): boolean {
	return /^(ERR_TLS|ERR_SSL|ERR_OSSL|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO)/.test(code ?? '') || /\bSSL\b|\bTLS\b|certificate|PEM/i.test(message);
}

function tlsReason(code: string | undefined, message: string): string {
	if (message.includes('does not support SSL')) return 'the server has no TLS';
	if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'the certificate is for another host name';
	if (code === 'CERT_HAS_EXPIRED') return 'the certificate has expired';
	if (code !== undefined && /ALERT_(?:UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE|UNSUPPORTED_CERTIFICATE)/.test(code)) return 'the server does not accept the client certificate';
	if (code !== undefined && /SELF_SIGNED|UNABLE_TO_|DEPTH_ZERO/.test(code)) return 'the certificate is not signed by a CA that is trusted here';
	return code ?? 'the certificates could not be read';
}

function isSqlState(code: string | undefined): code is string {
	// Node's own codes are an E and letters only (EPIPE, EPERM); no SQLSTATE is.
	return code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]+$/.test(code);
}

interface FailureDescription {
	code: string | undefined;
	severity: string | undefined;
	message: string;
}

export function describe(failure: unknown): FailureDescription {
	if (failure === null || typeof failure !== 'object') return { code: undefined, severity: undefined, message: '' };
	const { code, severity, message, errors } = failure as Record<string, unknown>;
	// Node tries several addresses of one name and then throws an AggregateError without a code of its own.
	if (code === undefined && Array.isArray(errors) && errors.length > 0) return describe(errors[0]);
	return {
		code: typeof code === 'string' ? code : undefined,
		severity: typeof severity === 'string' ? severity : undefined,
		message: typeof message === 'string' ? message : '',
	};
}
