import type { SSHCredentials, SSHTunnelFunctions } from 'n8n-workflow';
import { ClaimError } from '../../store/errors';
import type { ConnectionSettings, TunnelSettings } from '../../store/connection/settings';
import { lineOpener, type SshClient } from '../../store/connection/sshConnection';
import type { OpenLine } from '../../store/connection/tunnel';

type N8nSshClient = Awaited<ReturnType<SSHTunnelFunctions['getSSHClient']>>;

/**
 * How the store reaches the database when the credential asks for a tunnel: by n8n's own SSH client. It lives as long
 * as the store; no execution is held on to.
 *
 * @throws ClaimError when n8n gives no SSH client
 */
export function tunnelOf(context: { helpers: object }, settings: ConnectionSettings): OpenLine | undefined {
	const { tunnel } = settings;
	if (tunnel === undefined) return undefined;
	// Taken out of the object that they come in, which holds the execution. They are functions of their own.
	// eslint-disable-next-line @typescript-eslint/unbound-method
	const { getSSHClient, updateLastUsed } = sshFunctionsOf(context);
	return lineOpener(tunnel, settings, {
		logIn: async (login, dropped) => await getSSHClient(sshCredentials(login), dropped),
		reportUse: (client: SshClient) => updateLastUsed(client as N8nSshClient),
	});
}

/** n8n gives its SSH client to executions and credential tests, but not to polling triggers. */
function sshFunctionsOf({ helpers }: { helpers: object }): SSHTunnelFunctions {
	const found = 'getSSHClient' in helpers ? helpers : helpersOfCredentialTests();
	if ('getSSHClient' in found) return found as SSHTunnelFunctions;
	throw new ClaimError('store_misconfigured', 'This version of n8n gives a trigger no SSH client', {
		hint: 'Update n8n, or switch SSH Tunnel off in the Claim Store credential of this node and reach the database in another way.',
	});
}

/** For the Claim Recovery Trigger, which polls: there is no other way from there to the client that executions get. */
function helpersOfCredentialTests(): object {
	try {
		// Not a dependency: n8n lets its nodes find its own packages.
		// eslint-disable-next-line @typescript-eslint/no-require-imports
		const { CredentialTestContext } = require('n8n-core') as { CredentialTestContext: new () => { helpers: object } };
		return new CredentialTestContext().helpers;
	} catch {
		return {};
	}
}

/** In the form of n8n's own credentials, so that equal settings there share the connection. */
function sshCredentials({ host, port, user, login }: TunnelSettings): SSHCredentials {
	const place = { sshHost: host, sshPort: port, sshUser: user };
	if ('password' in login) return { ...place, sshAuthenticateWith: 'password', sshPassword: login.password };
	return { ...place, sshAuthenticateWith: 'privateKey', ...login };
}
