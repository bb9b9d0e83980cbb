import { utils } from 'ssh2';

/** How the private key is protected, if it is. */
interface Protection {
	passphrase: string;
	cipher: 'aes256-cbc';
	rounds: number;
}

/** A key pair in OpenSSH's form. About one in 270 that ssh2 makes cannot be read by ssh2 itself; such a pair is made anew. */
export function ed25519Keys(protection?: Protection): { private: string; public: string } {
	for (;;) {
		const pair = protection ? utils.generateKeyPairSync('ed25519', protection) : utils.generateKeyPairSync('ed25519');
		if (!(utils.parseKey(pair.private, protection?.passphrase) instanceof Error)) return pair;
	}
}
