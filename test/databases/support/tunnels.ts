import { CredentialTestContext } from 'n8n-core';
import type { ICredentialDataDecryptedObject, IDataObject } from 'n8n-workflow';
import { testClaimStoreCredential } from '../../../nodes/shared/credentialTest';
import { ed25519Keys } from '../../support/sshKeys';
import { startSshServer, type SshServer } from '../../support/sshServer';

export const SSH_USER = 'tunnel';
export const SSH_PASSWORD = 'ssh-S3cret';
const KEYS = ed25519Keys();

/** A server that lets the user in whom these credentials name. */
export async function startTunnelServer(publicKey: string = KEYS.public): Promise<SshServer> {
	return await startSshServer({ user: SSH_USER, password: SSH_PASSWORD, publicKey });
}

/** The fields of a credential that goes through this server. */
export function through({ host, port }: { host: string; port: number }, changes: IDataObject = {}): IDataObject {
	return { sshTunnel: true, sshAuthenticateWith: 'password', sshHost: host, sshPort: port, sshUser: SSH_USER, sshPassword: SSH_PASSWORD, ...changes };
}

/** The same with the key that `startTunnelServer` lets in, unless another one is given. */
export function throughByKey(server: { host: string; port: number }, changes: IDataObject = {}): IDataObject {
	return through(server, { sshAuthenticateWith: 'privateKey', privateKey: KEYS.private, ...changes });
}

/** What n8n's own context of a credential test makes of it. */
export async function testCredential(data: ICredentialDataDecryptedObject): Promise<{ status: string; message: string }> {
	const context = new CredentialTestContext({} as never);
	const { status, message } = await testClaimStoreCredential.call(context, { id: 'store', name: 'store', type: 'claimStoreApi', data });
	return { status, message };
}
