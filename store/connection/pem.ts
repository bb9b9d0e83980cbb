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

/** Undefined when nothing was pasted. */
function blocksOf(text: string | undefined): Block[] | undefined {
	const lines = text?.replace(/\\[rn]/g, '\n').trim();
	if (!lines) return undefined;
	return [...lines.matchAll(/-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----/gs)].map(([, label, body]) => {
		const content = body.includes(':') ? body.trim() : (body.replace(/\s+/g, '').match(/.{1,64}/g) ?? []).join('\n');
		return { label, pem: `-----BEGIN ${label}-----\n${content}\n-----END ${label}-----\n` };
	});
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
