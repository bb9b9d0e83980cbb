import { once } from 'node:events';
import { createConnection, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** What happened to a client message that a test asked for. */
export interface Interception {
	/** Resolves when the client message came and was dealt with. */
	readonly happened: Promise<void>;
}

/** A client message that the proxy keeps back until the test lets it go. */
export interface HeldMessage extends Interception {
	/** Sends it on to the server, even if the client has given up meanwhile. */
	release(): void;
}

/**
 * A TCP line between a client and PostgreSQL that breaks on demand. Messages are picked by a text
 * that their bytes contain, such as `INSERT INTO`, or the prepared statement that they name; each interception is used up by one message.
 */
export interface Proxy {
	readonly host: string;
	readonly port: number;
	/** Connections accepted so far. */
	readonly accepted: number;
	/** Lines of which one side at least is still open. */
	readonly open: number;
	/** Back to carrying everything, first of all what a silent network has kept. */
	forward(): Promise<void>;
	/** Closes the listening port and all lines, and returns when their clients know: new ones get ECONNREFUSED. */
	refuse(): Promise<void>;
	/**
	 * Keeps all lines open, accepts new ones, and carries nothing. As a network that is down for a while does, it
	 * keeps what comes, and delivers it when it carries again, also from a client that has given up meanwhile.
	 */
	goSilent(): void;
	/** Goes silent when the message comes, before it is carried. */
	goSilentAt(text: string): Interception;
	/** Carries every chunk, in order, this much later. */
	delay(milliseconds: number): void;
	/** The server works the message off; its answer is dropped and the line cut. */
	loseAnswerTo(text: string): Interception;
	/** The server works the message off; the line is cut when a part of its answer has come through. */
	cutInsideAnswerTo(text: string): Interception;
	/** The message never reaches the server; the line is cut. */
	cutBefore(text: string): Interception;
	/** The server works the message off; the client waits for the answer for ever. */
	swallowAnswerTo(text: string): Interception;
	/** The message waits in the proxy. */
	hold(text: string): HeldMessage;
	/** Takes back what was asked for and has not happened. */
	forgetOrders(): void;
	/** Cuts all lines once, and returns when their clients know; new ones are carried. */
	cutAll(): Promise<void>;
	close(): Promise<void>;
}

type Fate = 'loseAnswer' | 'cutInsideAnswer' | 'cutBefore' | 'swallowAnswer' | 'hold' | 'goSilent';

interface Order {
	text: string;
	fate: Fate;
	done: () => void;
	released: Promise<void>;
}

/** The name of a statement, followed by its text where it is prepared, or by something else where it is used. */
const PREPARED = /(claim_[0-9a-f]{40})\0([^\0]*)/g;

type Mode = { kind: 'forward' } | { kind: 'silent' } | { kind: 'delay'; milliseconds: number };

/** Starts a proxy on a free port in front of `server`. */
export async function startProxy(server: { host: string; port: number }): Promise<Proxy> {
	let mode: Mode = { kind: 'forward' };
	let accepted = 0;
	const lines = new Set<{ client: Socket; upstream: Socket }>();
	const orders: Order[] = [];
	/** What a silent network owes, in order. */
	const kept: Array<() => void> = [];

	/** The texts of prepared statements, by name: later messages say the name only. */
	const prepared = new Map<string, string>();
	const preparedIn = (chunk: Buffer): Buffer[] =>
		[...chunk.toString('latin1').matchAll(PREPARED)].map(([, name, text]) => {
			if (text) prepared.set(name, text);
			return Buffer.from(prepared.get(name) ?? '', 'latin1');
		});

	/** Takes the order whose text ends in `chunk`, or is that of a prepared statement that it names; it may have begun in `before`. */
	const takeOrder = (before: Buffer, chunk: Buffer): Order | undefined => {
		const seen = Buffer.concat([before, chunk, ...preparedIn(chunk)]);
		const index = orders.findIndex(({ text }) => seen.includes(text, Math.max(0, before.length - text.length + 1)));
		return index < 0 ? undefined : orders.splice(index, 1)[0];
	};

	const carry = (to: Socket, chunk: Buffer) => {
		const write = () => void (to.writable && to.write(chunk));
		if (mode.kind === 'silent') kept.push(write);
		else if (mode.kind === 'delay') setTimeout(write, mode.milliseconds);
		else write();
	};

	const join = (client: Socket) => {
		accepted++;
		const upstream = createConnection(server);
		const line = { client, upstream };
		lines.add(line);
		const cut = () => {
			client.destroy();
			upstream.destroy();
		};
		for (const socket of [client, upstream]) {
			socket.setNoDelay(true);
			socket.on('error', () => undefined);
			socket.on('close', () => client.closed && upstream.closed && lines.delete(line));
		}

		/** A statement's text can be split between two chunks: the end of the last one is kept. */
		let tail = Buffer.alloc(0);
		let answerOf: Order | undefined;
		let answer = Buffer.alloc(0);
		let held: Buffer[] | undefined;

		client.on('data', (chunk: Buffer) => {
			if (held) {
				held.push(chunk);
				return;
			}
			const order = takeOrder(tail, chunk);
			tail = Buffer.from(chunk.subarray(-200));
			if (order?.fate === 'cutBefore') {
				cut();
				order.done();
				return;
			}
			if (order?.fate === 'hold') {
				held = [chunk];
				void order.released.then(() => {
					upstream.write(Buffer.concat(held ?? []));
					held = undefined;
					if (client.destroyed) upstream.end();
				});
				order.done();
				return;
			}
			if (order?.fate === 'goSilent') {
				mode = { kind: 'silent' };
				order.done();
			} else if (order) {
				answerOf = order;
			}
			carry(upstream, chunk);
		});
		upstream.on('data', (chunk: Buffer) => {
			if (!answerOf) return carry(client, chunk);
			answer = Buffer.concat([answer, chunk]);
			if (!endsInReadyForQuery(answer)) return;
			const { fate, done } = answerOf;
			if (fate === 'loseAnswer') cut();
			// Sent before the end: what the client gets is the beginning of a message, and then the end of the line.
			if (fate === 'cutInsideAnswer') client.write(answer.subarray(0, answer.length / 2), cut);
			answer = Buffer.alloc(0);
			done();
		});
		client.on('close', () => {
			// A message that is held back outlives its client, as one in a network buffer does.
			if (mode.kind === 'silent') kept.push(() => upstream.end());
			else if (!held) upstream.destroy();
		});
		upstream.on('close', () => {
			// Not destroyed: its side is open until the client has heard of it.
			if (mode.kind === 'silent') kept.push(() => client.end());
			else client.end();
		});
	};

	const listen = async (port: number): Promise<Server> => {
		const listener = createServer(join).listen(port, '127.0.0.1');
		await once(listener, 'listening');
		return listener;
	};
	let listener: Server | undefined = await listen(0);
	const { port } = listener.address() as AddressInfo;

	const cutAll = async () => {
		kept.splice(0);
		await Promise.all(
			[...lines].map(async ({ client, upstream }) => {
				const closed = client.closed || new Promise((resolve) => client.once('close', resolve));
				upstream.destroy();
				client.end();
				await closed;
			}),
		);
	};
	const stopListening = async () => {
		if (!listener) return;
		const closed = once(listener, 'close');
		listener.close();
		listener = undefined;
		await cutAll();
		await closed;
	};
	const order = (text: string, fate: Fate): HeldMessage => {
		let release = () => {};
		const released = new Promise<void>((resolve) => (release = resolve));
		const happened = new Promise<void>((done) => orders.push({ text, fate, done, released }));
		return { happened, release };
	};

	return {
		host: '127.0.0.1',
		port,
		get accepted() {
			return accepted;
		},
		get open() {
			return lines.size;
		},
		async forward() {
			mode = { kind: 'forward' };
			for (const carryOn of kept.splice(0)) carryOn();
			listener ??= await listen(port);
		},
		refuse: stopListening,
		goSilent: () => (mode = { kind: 'silent' }),
		goSilentAt: (text) => order(text, 'goSilent'),
		delay: (milliseconds) => (mode = { kind: 'delay', milliseconds }),
		loseAnswerTo: (text) => order(text, 'loseAnswer'),
		cutInsideAnswerTo: (text) => order(text, 'cutInsideAnswer'),
		cutBefore: (text) => order(text, 'cutBefore'),
		swallowAnswerTo: (text) => order(text, 'swallowAnswer'),
		hold: (text) => order(text, 'hold'),
		forgetOrders: () => void orders.splice(0),
		cutAll,
		async close() {
			for (const { client, upstream } of lines) {
				client.destroy();
				upstream.destroy();
			}
			await stopListening();
		},
	};
}

/** Whether these server messages, which begin at a message's start, end in ReadyForQuery. */
function endsInReadyForQuery(bytes: Buffer): boolean {
	let position = 0;
	let last = '';
	while (position + 5 <= bytes.length) {
		last = String.fromCharCode(bytes[position]);
		position += 1 + bytes.readUInt32BE(position + 1);
	}
	return position === bytes.length && last === 'Z';
}
