import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { ClaimError } from '../errors';

/**
 * Certificates and keys as people paste them: with line ends of any system, with the `\n` of a value copied from
 * JSON, or in one line, because a password field turns line ends into spaces or drops them. Node.js ignores a CA that
 * it cannot read without a word, so everything is read here first; no error repeats any of it.
 */

interface Block {
	label: string;
	pem: string;
}

/** What a CA bundle or a certificate chain may hold besides certificates (names, comments) is left out. */
export function readCertificates(name: string, text: string | undefined): string | undefined {
	const blocks = blocksOf(text);
	if (blocks === undefined) return undefined;
	if (blocks.some(({ label }) => label.endsWith('PRIVATE KEY'))) throw unreadable(`${name} holds a private key`, 'Only certificates belong there; a private key belongs into Client Key.');
	const certificates = blocks.filter(({ label }) => label === 'CERTIFICATE').map(({ pem }) => pem);
	if (certificates.length === 0) throw unreadable(`${name} holds no certificate`, 'Paste its text, from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----, not the name of a file.');
	for (const certificate of certificates) {
		if (readOrNothing(() => new X509Certificate(certificate)) === undefined) throw unreadable(`${name} cannot be read as a certificate`, 'It is damaged, or a part of it is missing; paste it again.');
	}
	return certificates.join('');
}

/** @param certificates what `readCertificates` gave for the certificate that the key belongs to */
export function readPrivateKey(name: string, text: string | undefined, certificates: string | undefined): string | undefined {
	const blocks = blocksOf(text);
	if (blocks === undefined) return undefined;
	const block = blocks.find(({ label }) => label.endsWith('PRIVATE KEY'));
	if (block === undefined) throw unreadable(`${name} holds no private key`, 'Paste its text, from -----BEGIN PRIVATE KEY----- to -----END PRIVATE KEY-----, not the name of a file.');
	// The older form says it in a header of its own.
	if (block.label.startsWith('ENCRYPTED') || block.pem.includes('ENCRYPTED')) throw unreadable(`${name} is protected by a passphrase`, 'Paste the key without one: openssl pkey -in client.key prints it.');
	const key: KeyObject | undefined = readOrNothing(() => createPrivateKey(block.pem));
	if (key === undefined) throw unreadable(`${name} cannot be read as a private key`, 'It is damaged, or a part of it is missing; paste it again.');
	if (certificates !== undefined && !new X509Certificate(certificates).checkPrivateKey(key)) throw unreadable(`${name} does not belong to the certificate`, 'Paste the certificate and the key that were made together; of several certificates, the key\'s own comes first.');
	return block.pem;
}

/** Most rounds by which a passphrase may be drawn out: n8n's SSH client stands still meanwhile, and all of n8n with it. */
const MAX_KEY_ROUNDS = 128;

/** A key for an SSH login, also one under a passphrase. Undefined when nothing was pasted. */
export function readSshPrivateKey(name: string, text: string | undefined): string | undefined {
	const blocks = blocksOf(text);
	if (blocks === undefined) return undefined;
	const block = blocks.find(({ label }) => label.endsWith('PRIVATE KEY'));
	if (block === undefined) throw unreadable(`${name} holds no private key`, 'Paste its text, from -----BEGIN OPENSSH PRIVATE KEY----- to -----END OPENSSH PRIVATE KEY-----, not the name of a file and not the public key. PuTTYgen exports a .ppk as OpenSSH key.');
	if (block.label === 'PRIVATE KEY' || block.label === 'ENCRYPTED PRIVATE KEY') throw unreadable(`${name} is in a form (PKCS #8) that n8n's SSH client does not know`, REWRITE_KEY);
	if (block.label === 'OPENSSH PRIVATE KEY') {
		const rounds = readOrNothing(() => roundsOfOpenSshKey(block.pem));
		if (rounds === undefined) throw unreadable(`${name} cannot be read as a private key`, 'It is damaged, or a part of it is missing; paste it again.');
		if (rounds > MAX_KEY_ROUNDS) throw unreadable(`${name} is protected by ${rounds} rounds, which would stop n8n for a long time`, `Use a key with at most ${MAX_KEY_ROUNDS}: ssh-keygen -p -a 16 -f <copy of the key> changes it.`);
	} else if (!block.pem.includes('ENCRYPTED') && readOrNothing(() => createPrivateKey(block.pem)) === undefined) {
		throw unreadable(`${name} cannot be read as a private key`, 'It is damaged, or a part of it is missing; paste it again.');
	}
	return block.pem;
}

/** What to do about a key that ssh-keygen can read and n8n's SSH client cannot. */
export const REWRITE_KEY = 'ssh-keygen -p -f <copy of the key> writes it in OpenSSH\'s own form.';

/**
 * Of a key in OpenSSH's own form, by how many rounds its passphrase is drawn out; 0 without one. The parts must fill it
 * exactly: a character that was lost would shift them, and the SSH client would take any bytes for the number of rounds.
 */
function roundsOfOpenSshKey(pem: string): number {
	const bytes = Buffer.from(pem.split('\n').slice(1, -2).join(''), 'base64');
	let position = OPENSSH_MAGIC.length;
	if (bytes.toString('latin1', 0, position) !== OPENSSH_MAGIC) throw new Error('Not a key in OpenSSH\'s form');
	const next = (): Buffer => {
		const start = position + 4;
		position = start + bytes.readUInt32BE(position);
		if (position > bytes.length) throw new Error('Cut off');
		return bytes.subarray(start, position);
	};
	const [, , options] = [next(), next(), next()];
	const keys = bytes.readUInt32BE(position);
	position += 4;
	// For each its public part, then all private parts in one.
	for (let parts = 0; parts <= keys; parts++) next();
	if (keys !== 1 || position < bytes.length) throw new Error('Not one key');
	return options.length === 0 ? 0 : options.readUInt32BE(options.length - 4);
}

const OPENSSH_MAGIC = 'openssh-key-v1\0';

/** Undefined when nothing was pasted. */
function blocksOf(text: string | undefined): Block[] | undefined {
	const lines = text?.replace(/\\[rn]/g, '\n').trim();
	if (!lines) return undefined;
	return [...lines.matchAll(/-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----/gs)].map(([, label, body]) => {
		return { label, pem: `-----BEGIN ${label}-----\n${contentOf(body)}\n-----END ${label}-----\n` };
	});
}

/** The headers of an older key under a passphrase, and what follows them. */
const WITH_HEADERS = /^\s*(Proc-Type:)\s*(\S+)\s+(DEK-Info:)\s*(\S+)\s+(.*)$/s;

function contentOf(body: string): string {
	const [, type, typeValue, info, infoValue, rest] = WITH_HEADERS.exec(body) ?? [];
	if (rest !== undefined) return `${type} ${typeValue}\n${info} ${infoValue}\n\n${inLines(rest)}`;
	return body.includes(':') ? body.trim() : inLines(body);
}

function inLines(base64: string): string {
	return (base64.replace(/\s+/g, '').match(/.{1,64}/g) ?? []).join('\n');
}

function readOrNothing<T>(read: () => T): T | undefined {
	try {
		return read();
	} catch {
		// OpenSSL's message may repeat what was pasted.
		return undefined;
	}
}

function unreadable(message: string, hint: string): ClaimError {
	return new ClaimError('store_misconfigured', message, { hint });
}
