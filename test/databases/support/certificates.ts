import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { createPrivateKey, webcrypto } from 'node:crypto';

/** A certificate with its private key, both as PEM. */
export interface Certificate {
	certificate: string;
	key: string;
}

/** A certificate authority of a test. */
export interface Authority extends Certificate {
	/** For a server, by names and addresses as a client may ask for it. */
	forServer(names: string[], valid?: Validity): Promise<Certificate>;
	/** For a client who logs in as this user. */
	forClient(user: string): Promise<Certificate>;
}

export interface Validity {
	notBefore?: Date;
	notAfter?: Date;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY = 24 * 60 * 60 * 1000;
const FROM = () => new Date(Date.now() - DAY);
const UNTIL = () => new Date(Date.now() + DAY);
/** Over since an hour, so that a wrong time zone is not needed to see it as over. */
export const EXPIRED: Validity = { notAfter: new Date(Date.now() - DAY / 24) };

x509.cryptoProvider.set(webcrypto as unknown as Parameters<typeof x509.cryptoProvider.set>[0]);

let certificatesMade = 0;
const serial = () => (0x1000 + ++certificatesMade).toString(16).padStart(16, '0');
const makeKeys = async () => await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);

async function keyText(keys: webcrypto.CryptoKeyPair): Promise<string> {
	const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
	return String(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({ format: 'pem', type: 'pkcs8' }));
}

const text = (certificate: x509.X509Certificate) => `${certificate.toString('pem')}\n`;

function namesExtension(names: string[]): x509.SubjectAlternativeNameExtension {
	return new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: /^[\d.]+$|:/.test(value) ? 'ip' : 'dns', value })));
}

export async function makeAuthority(name: string): Promise<Authority> {
	const keys = await makeKeys();
	const issuer = `CN=${name}`;
	const own = await x509.X509CertificateGenerator.createSelfSigned({
		serialNumber: serial(),
		name: issuer,
		keys,
		signingAlgorithm: ALGORITHM,
		notBefore: FROM(),
		notAfter: UNTIL(),
		extensions: [new x509.BasicConstraintsExtension(true, undefined, true), new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true)],
	});
	const issue = async (subject: string, extensions: x509.Extension[], { notBefore = FROM(), notAfter = UNTIL() }: Validity = {}): Promise<Certificate> => {
		const theirs = await makeKeys();
		const certificate = await x509.X509CertificateGenerator.create({
			serialNumber: serial(),
			issuer,
			subject: `CN=${subject}`,
			publicKey: theirs.publicKey,
			signingKey: keys.privateKey,
			signingAlgorithm: ALGORITHM,
			notBefore,
			notAfter,
			extensions,
		});
		return { certificate: text(certificate), key: await keyText(theirs) };
	};
	return {
		certificate: text(own),
		key: await keyText(keys),
		forServer: async (names, valid) => await issue(names[0], [namesExtension(names)], valid),
		forClient: async (user) => await issue(user, []),
	};
}

/** A server's certificate that nobody else signed. */
export async function makeSelfSigned(names: string[]): Promise<Certificate> {
	const keys = await makeKeys();
	const certificate = await x509.X509CertificateGenerator.createSelfSigned({
		serialNumber: serial(),
		name: `CN=${names[0]}`,
		keys,
		signingAlgorithm: ALGORITHM,
		notBefore: FROM(),
		notAfter: UNTIL(),
		extensions: [namesExtension(names)],
	});
	return { certificate: text(certificate), key: await keyText(keys) };
}
