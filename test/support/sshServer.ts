import { once } from 'node:events';
import { connect as connectSocket, createServer, type AddressInfo, type Socket } from 'node:net';
import { Server, utils, type ParsedKey } from 'ssh2';
import { ed25519Keys } from './sshKeys';

/** What an SSH server does with somebody who wants a line to a database. */
type Forwarding = 'allowed' | 'prohibited' | 'held';

/** Who may log in: by this password, or by the private key to this public one (in OpenSSH's form). */
export interface SshLogin {
	user: string;
	password: string;
	publicKey: string;
}

/** A real SSH server that forwards lines, and whose lines break in every way that a network knows. */
export interface SshServer {
	readonly host: string;
	readonly port: number;
	/** SSH connections accepted so far. */
	readonly accepted: number;
	/** SSH connections that are open. */
	readonly open: number;
	/** Where lines were asked for so far, as `host:port`. */
	readonly asked: string[];
	/** Forwarded lines that are open on both sides. */
	readonly lines: number;
	/** Lines opened so far. */
	readonly opened: number;
	/** From now on, lines are opened (the beginning), refused by the server's rules, or not answered until they are let go; one to the SSH server itself is refused then. */
	forwarding(how: Forwarding): void;
	/** Whether nobody is let in from now on. */
	refuseLogins(refuse: boolean): void;
	/** Opens what was held back; how many lines. */
	letGo(): number;
	/** Cuts all SSH connections; new ones are accepted. */
	drop(): void;
	/** The SSH connections of now neither take nor say anything any more, and stay open; new ones are as ever. */
	fallSilent(): void;
	close(): Promise<void>;
}

/** RFC 4254, 5.1. */
const ADMINISTRATIVELY_PROHIBITED = 1;

/** Starts an SSH server on a free port. */
export async function startSshServer(login: SshLogin): Promise<SshServer> {
	const allowedKey = utils.parseKey(login.publicKey) as ParsedKey;
	const hostKey = ed25519Keys().private;
	const sockets = new Set<Socket>();
	const asked: string[] = [];
	let how: Forwarding = 'allowed';
	let refusesLogins = false;
	let held: Array<() => void> = [];
	let accepted = 0;
	let lines = 0;
	let opened = 0;

	const ssh = new Server({ hostKeys: [hostKey] }, (client) => {
		client.on('error', () => undefined);
		client.on('authentication', (context) => {
			const isKnown = context.username === login.user && !refusesLogins;
			if (isKnown && context.method === 'password' && context.password === login.password) context.accept();
			else if (isKnown && context.method === 'publickey' && isAllowed(context.key.data, context.blob, context.signature, context.hashAlgo)) context.accept();
			else context.reject(['password', 'publickey']);
		});
		client.on('tcpip', (accept, reject, { destIP, destPort }) => {
			const open = () => {
				const line = connectSocket(destPort, destIP);
				line.on('error', () => undefined);
				line.once('connect', () => {
					const channel = accept();
					lines++;
					opened++;
					channel.on('error', () => undefined);
					channel.pipe(line).pipe(channel);
					line.once('close', () => {
						lines--;
						channel.destroy();
					});
					channel.once('close', () => line.destroy());
				});
				line.once('error', reject);
			};
			asked.push(`${destIP}:${destPort}`);
			if (how === 'allowed') open();
			else if (how === 'prohibited') prohibit(reject);
			else if (destIP === '127.0.0.1' && destPort === 1) reject();
			else held.push(open);
		});

		/** The library's own refusal always says that the other side was not reached. */
		const prohibit = (reject: () => void) => {
			const protocol = (client as unknown as { _protocol: { channelOpenFail: (id: number, reason: number, text: string) => void } })._protocol;
			const asItIs = protocol.channelOpenFail;
			protocol.channelOpenFail = (id) => asItIs.call(protocol, id, ADMINISTRATIVELY_PROHIBITED, 'open failed');
			reject();
			protocol.channelOpenFail = asItIs;
		};
	});

	const isAllowed = (data: Buffer, blob: Buffer | undefined, signature: Buffer | undefined, algorithm: string | undefined): boolean => {
		if (!data.equals(allowedKey.getPublicSSH())) return false;
		// Without a signature the client only asks whether it may try this key.
		return !signature || !blob || allowedKey.verify(blob, signature, algorithm) === true;
	};

	const listener = createServer((socket) => {
		accepted++;
		sockets.add(socket);
		socket.on('error', () => undefined);
		socket.once('close', () => sockets.delete(socket));
		ssh.injectSocket(socket);
	}).listen(0, '127.0.0.1');
	await once(listener, 'listening');
	const { port } = listener.address() as AddressInfo;

	return {
		host: '127.0.0.1',
		port,
		get accepted() {
			return accepted;
		},
		get open() {
			return sockets.size;
		},
		asked,
		get lines() {
			return lines;
		},
		get opened() {
			return opened;
		},
		forwarding: (wanted) => (how = wanted),
		refuseLogins: (refuse) => (refusesLogins = refuse),
		letGo() {
			const lines = held.splice(0);
			for (const open of lines) open();
			return lines.length;
		},
		drop() {
			for (const socket of sockets) socket.destroy();
		},
		fallSilent() {
			for (const socket of sockets) {
				socket.pause();
				socket.cork();
			}
		},
		async close() {
			held = [];
			const closed = once(listener, 'close');
			listener.close();
			for (const socket of sockets) socket.destroy();
			await closed;
		},
	};
}
