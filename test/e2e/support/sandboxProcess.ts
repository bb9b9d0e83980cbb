import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { freePorts } from '../../../sandbox/ports';
import { createProgress } from '../../../sandbox/progress';
import { SANDBOX_STAGES, startSandbox, type Sandbox } from '../../../sandbox/sandbox';
import type { SandboxAddress } from './address';
import { queueMode, WORKERS, type QueueMode } from './queueMode';
import { secondN8n, type SecondN8n } from './secondN8n';
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
	const dataFolder = process.argv[2];
	const sandbox = await startSandbox({ dataFolder, ports, progress: createProgress(SANDBOX_STAGES), cancelSignal: cancel.signal });
	const surroundings = { sandbox, claimStorePort: ports.claimStore, dataFolder, cancelSignal: cancel.signal };
	const second = secondN8n(surroundings);
	const queue = queueMode(surroundings);
	const control = await startControl(sandbox, second, queue);
	process.send?.(await describe(sandbox, ports.claimStore, control.url));
	await ended;
	await control.stop();
	await second.stop();
	await queue.stop();
	await sandbox.stop();
}

/**
 * Test files are processes of their own; through this they give orders: `POST /kill` n8n, `POST /restart` it, `POST
 * /second` starts another one beside it and answers its address, `POST /leaveSecond` ends that one; `POST /queue` starts one in queue mode
 * in its place and answers its address, `POST /kill/worker1` and `POST /start/worker1` do so with its workers, `POST /leaveQueue` ends it.
 */
async function startControl(sandbox: Sandbox, second: SecondN8n, queue: QueueMode): Promise<{ url: string; stop: () => Promise<void> }> {
	const orders: Record<string, () => Promise<unknown>> = {
		'/kill': sandbox.killN8n,
		'/restart': sandbox.restartN8n,
		'/second': second.start,
		'/leaveSecond': second.leave,
		'/queue': queue.start,
		'/leaveQueue': queue.leave,
	};
	for (const worker of WORKERS) {
		orders[`/kill/${worker}`] = async () => await queue.killWorker(worker);
		orders[`/start/${worker}`] = async () => await queue.startWorker(worker);
	}
	const server = createServer((request, response) => {
		const answer = (status: number, text: string) => void response.writeHead(status).end(text);
		const order = orders[request.url ?? ''];
		if (order === undefined) return answer(404, 'No such order');
		order().then(
			(result) => answer(200, JSON.stringify(result ?? null)),
			(failure: Error) => answer(500, failure.message),
		);
	}).listen(0, '127.0.0.1');
	await once(server, 'listening');
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		async stop() {
			server.closeAllConnections();
			server.close();
			await once(server, 'close');
		},
	};
}

async function describe(sandbox: Sandbox, claimStorePort: number, controlUrl: string): Promise<SandboxAddress> {
	const { n8nUrl, login, credentials, workflows, claimStoreDatabase, destinationUrl, logFile } = sandbox;
	const { cookie } = await Session.open(n8nUrl, login);
	return { n8nUrl, login, sessionCookie: cookie, credentials, workflows, claimStoreDatabase, claimStorePort, destinationUrl, logFile, controlUrl };
}

main().then(
	() => process.exit(0),
	(error: Error) => {
		console.error(error.message);
		process.exit(1);
	},
);
