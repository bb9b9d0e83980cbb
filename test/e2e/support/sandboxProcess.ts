import { freePorts } from '../../../sandbox/ports';
import { createProgress } from '../../../sandbox/progress';
import { SANDBOX_STAGES, startSandbox, type Sandbox } from '../../../sandbox/sandbox';
import type { SandboxAddress } from './address';
import { Session } from './session';

/**
 * The sandbox in a process of its own: a run that is broken off, however it ends, closes the channel to this
 * process, and this one then stops what it has started.
 */
async function main(): Promise<void> {
	const cancel = new AbortController();
	const ended = new Promise<void>((resolve) => {
		for (const event of ['message', 'disconnect'] as const) process.once(event, () => resolve());
	});
	void ended.then(() => cancel.abort(new Error('The run has ended')));
	// Ctrl-C reaches jest as well; it is jest's end that ends the sandbox.
	for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});

	const ports = await freePorts();
	const sandbox = await startSandbox({ dataFolder: process.argv[2], ports, progress: createProgress(SANDBOX_STAGES), cancelSignal: cancel.signal });
	process.send?.(await describe(sandbox, ports.claimStore));
	await ended;
	await sandbox.stop();
}

async function describe(sandbox: Sandbox, claimStorePort: number): Promise<SandboxAddress> {
	const { n8nUrl, login, workflows, claimStoreDatabase, destinationUrl, logFile } = sandbox;
	const { id, name } = sandbox.credential;
	const { cookie } = await Session.open(n8nUrl, login);
	return { n8nUrl, login, sessionCookie: cookie, credential: { id, name }, workflows, claimStoreDatabase, claimStorePort, destinationUrl, logFile };
}

main().then(
	() => process.exit(0),
	(error: Error) => {
		console.error(error.message);
		process.exit(1);
	},
);
