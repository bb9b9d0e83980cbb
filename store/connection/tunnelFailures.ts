import { ClaimError, type ErrorKind } from '../errors';
import { describe, networkReason, SEEN_FROM_THERE } from './failures';
import { REWRITE_KEY } from './pem';
import type { ConnectionSettings, TunnelSettings } from './settings';

/**
 * What a failure of the SSH client or server means, in words that name neither password nor key. Judged by code and
 * text, never by class: the client is n8n's.
 */

/** The client could not log in. */
export function sshLoginFailure(failure: unknown, tunnel: TunnelSettings): ClaimError {
	if (failure instanceof ClaimError) return failure;
	const { code, message } = describe(failure);
	const level = (failure as { level?: unknown } | undefined)?.level;
	const place = sshPlace(tunnel);

	if (/^Cannot parse privateKey/.test(message)) return unreadableKey(message);
	if (level === 'client-authentication' || /authentication failures/i.test(message)) {
		return make('store_denied', `${place} refused the login of "${tunnel.user}"`, 'privateKey' in tunnel.login
			? 'Check SSH User and SSH Private Key in the Claim Store credential: the public key that belongs to it must be in that user\'s authorized_keys on the SSH server.'
			: 'Check SSH User and SSH Password in the Claim Store credential. If the server takes no passwords (PasswordAuthentication), or asks for a code as well, use a private key.');
	}
	if (level === 'client-socket' || level === 'client-timeout') return noSsh(tunnel, level === 'client-timeout' ? 'ETIMEDOUT' : code);
	if (/no matching/.test(message)) {
		return make('store_misconfigured', `${place} and n8n's SSH client have no algorithm in common`, 'Update the SSH server, or allow one more key exchange, cipher or host key type in its configuration.');
	}
	return make('store_unreachable', `${place} ended the connection before the login`, 'Check that SSH Port is the port of an SSH server. It may also turn away whoever comes too often; then try again later.');
}

/** The server did not open the line. @param reason the reason code of RFC 4254, as far as there is one */
export function forwardingFailure(reason: unknown, tunnel: TunnelSettings, settings: ConnectionSettings): ClaimError {
	const place = sshPlace(tunnel);
	if (reason === 1) {
		return make('store_denied', `${place} does not let "${tunnel.user}" through to ${databasePlace(settings)}`, 'Allow it on the SSH server: AllowTcpForwarding and PermitOpen in sshd_config, restrict and permitopen in authorized_keys. Host and Port must be written as they are allowed there.');
	}
	if (reason === 4) return make('store_busy', `${place} has no room for one more line`, 'Nothing was written for this item; it can be tried again later.');
	return make('store_unreachable', `${place} cannot reach PostgreSQL at ${databasePlace(settings)}`, SEEN_FROM_THERE);
}

/** It was waited for the login until time was over. */
export function sshSilent(tunnel: TunnelSettings): ClaimError {
	return noSsh(tunnel, 'ETIMEDOUT');
}

/** It was waited for the line until time was over. */
export function databaseSilent(tunnel: TunnelSettings, settings: ConnectionSettings): ClaimError {
	return make('store_unreachable', `${sshPlace(tunnel)} could not reach PostgreSQL at ${databasePlace(settings)} in time`, SEEN_FROM_THERE);
}

/** The connection broke again each time that it was opened. */
export function sshLost(tunnel: TunnelSettings): ClaimError {
	return make('store_unreachable', `The connection to ${lowerFirst(sshPlace(tunnel))} broke`, 'It is opened again by itself: try again later.');
}

function noSsh(tunnel: TunnelSettings, code: string | undefined): ClaimError {
	return make('store_unreachable', `No connection to ${lowerFirst(sshPlace(tunnel))} (${networkReason(code)})`, 'Check that the SSH server is running and that SSH Host and SSH Port are right. In Docker, localhost is the container itself.');
}

function unreadableKey(message: string): ClaimError {
	if (/passphrase|integrity check/i.test(message)) {
		return make('store_misconfigured', 'SSH Private Key cannot be opened with this passphrase', 'The key is protected: fill in SSH Key Passphrase in the Claim Store credential, or correct it.');
	}
	return make('store_misconfigured', 'SSH Private Key cannot be read as an SSH key', `It is damaged, or in a form that n8n's SSH client does not know: ${REWRITE_KEY}`);
}

function sshPlace({ host, port }: TunnelSettings): string {
	return `The SSH server at ${host}:${port}`;
}

function lowerFirst(text: string): string {
	return text.charAt(0).toLowerCase() + text.slice(1);
}

function databasePlace({ host, port }: ConnectionSettings): string {
	return `${host}:${port}`;
}

function make(kind: ErrorKind, message: string, hint: string): ClaimError {
	return new ClaimError(kind, message, { hint });
}
