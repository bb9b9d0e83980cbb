import { createHash } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConnectionSettings, TunnelSettings } from './settings';
import type { OpenLine, TunnelLine } from './tunnel';
import { databaseSilent, forwardingFailure, sshLoginFailure, sshLost, sshSilent } from './tunnelFailures';

/**
 * The way to the database through an SSH server. The SSH clients are somebody else's, who shares one between all that
 * have equal settings, closes it when it seems to be of no use for some minutes, and does not look whether the other
 * side still answers.
 */
export interface SshClients {
	/**
	 * A client that has logged in, a new one or one that is there.
	 *
	 * @param dropped is aborted when a client that is new is not kept any more, before what made it so is reported
	 */
	logIn(tunnel: TunnelSettings, dropped: AbortController): Promise<SshClient>;
	/** Told again and again while the client is used. */
	reportUse(client: SshClient): void;
}

/** An SSH client as far as it is needed here (that of `ssh2`). */
export interface SshClient {
	forwardOut(fromHost: string, fromPort: number, toHost: string, toPort: number, answered: (failure: Error | undefined, channel: Duplex) => void): unknown;
	once(event: 'error' | 'end' | 'close', listener: () => void): SshClient;
	destroy(): unknown;
}

/** How often one line is asked for, when the SSH connection turns out to be broken. */
const MAX_TRIES = 4;
/** Milliseconds between a login that came to nothing and the next one; doubled each time that a login is dropped by somebody else. */
const PAUSE_MS = 250;
/** Milliseconds without an answer until an SSH connection is doubted, and again until it is given up: a fourth of the timeout, within these. */
const [LEAST_PATIENCE_MS, MOST_PATIENCE_MS] = [1000, 5000];
/** Milliseconds; a socket that is destroyed closes at once. */
const MOST_FOR_CLOSING_MS = 1000;
/** Milliseconds; the client itself gives up sooner, except one that another user of it had begun and that was dropped. */
const MOST_FOR_LOGIN_MS = 25_000;
/** Milliseconds; whoever keeps the clients may be set to close one after a second without use. */
const USE_REPORT_MS = 500;
/** Where a line is said to come from: the server asks, and this is what OpenSSH's own client says of one without a socket. */
const [ORIGIN_HOST, ORIGIN_PORT] = ['127.0.0.1', 65_535];

/** The SSH connections of this process that are open, being opened or closing. */
const connections = new Map<string, SshConnection>();

/** How to reach the database through the SSH server that the settings name. */
export function lineOpener(tunnel: TunnelSettings, settings: ConnectionSettings, clients: SshClients): OpenLine {
	const key = createHash('sha256').update(JSON.stringify(tunnel)).digest('hex');
	const patienceMs = Math.min(MOST_PATIENCE_MS, Math.max(LEAST_PATIENCE_MS, settings.timeoutMs / 4));

	return async (host, port, signal) => {
		let connection = connections.get(key);
		if (connection === undefined) {
			const made = new SshConnection(tunnel, clients, () => connections.get(key) === made && connections.delete(key));
			connection = made;
			connections.set(key, connection);
		}
		return await connection.open({ host, port, settings, signal, patienceMs });
	};
}

/** A line that somebody wants. */
interface Wish {
	host: string;
	port: number;
	settings: ConnectionSettings;
	signal: AbortSignal;
	patienceMs: number;
}

/** A client that has logged in. */
interface LoggedIn {
	ssh: SshClient;
	/** Whether it is known to be of no use any more. */
	lost: boolean;
	/** Gives it up, so that the next line gets a new one. */
	drop: () => void;
	/** Lines that are open. */
	lines: number;
	/** While lines are open. */
	useReports: NodeJS.Timeout | undefined;
	/** While it is being looked whether it still answers. */
	doubt: Promise<void> | undefined;
}

class SshConnection {
	private client: Promise<LoggedIn | undefined> | undefined;
	/**
	 * The last client, until it is closed. When a client closes, the one that is kept under the same settings is
	 * dropped, be it another one; so a new one waits.
	 */
	private closing: Promise<unknown> = Promise.resolve();
	/** Logins that were dropped since the last one that was not. */
	private drops = 0;
	/** Lines, open or wished for, that the process has to stay alive for. */
	private holds = 0;
	private socket: Socket | undefined;

	constructor(
		private readonly tunnel: TunnelSettings,
		private readonly clients: SshClients,
		private readonly forget: () => void,
	) {}

	/** See `OpenLine`. */
	async open(wish: Wish): Promise<TunnelLine> {
		const hold = this.hold();
		try {
			for (let tries = 0; tries < MAX_TRIES; tries++) {
				const client = await beforeTheSignal(this.loggedIn(), wish.signal, () => sshSilent(this.tunnel));
				const channel = client && (await this.forward(client, wish));
				if (client && channel) return this.lineOf(client, channel, hold, wish.patienceMs);
			}
			throw sshLost(this.tunnel);
		} catch (failure) {
			hold.end();
			throw failure;
		}
	}

	private async loggedIn(): Promise<LoggedIn | undefined> {
		if (this.client === undefined) {
			const client = this.logIn(() => {
				if (this.client === client) this.client = undefined;
				void this.forgetIfUnused();
			});
			this.client = client;
		}
		return await this.client;
	}

	/**
	 * A client, or nothing when it was dropped before it had logged in.
	 *
	 * @param whenLost is called once, at the first sign that the client is of no use, or never was
	 * @throws ClaimError
	 */
	private async logIn(whenLost: () => void): Promise<LoggedIn | undefined> {
		await this.closing;
		const dropped = new AbortController();
		try {
			const ssh = await Promise.race([
				this.clients.logIn(this.tunnel, dropped),
				soonAfter(dropped.signal),
				pause(MOST_FOR_LOGIN_MS).then(() => Promise.reject(sshSilent(this.tunnel))),
			]);
			this.drops = ssh ? 0 : this.drops + 1;
			if (ssh) return this.watched(ssh, dropped.signal, whenLost);
			this.closing = pause(PAUSE_MS * 2 ** this.drops);
			whenLost();
			return undefined;
		} catch (failure) {
			// This client is not handed out; it closes while the other side takes its leave.
			this.closing = pause(PAUSE_MS);
			whenLost();
			// A client that never got as far as connecting (an unreadable key) would be kept.
			dropped.abort();
			throw sshLoginFailure(failure, this.tunnel);
		}
	}

	private watched(ssh: SshClient, dropped: AbortSignal, whenLost: () => void): LoggedIn {
		const socket = socketOf(ssh);
		const closed = new Promise<void>((resolve) => void ssh.once('close', resolve));
		const client: LoggedIn = {
			ssh,
			lost: false,
			lines: 0,
			useReports: undefined,
			doubt: undefined,
			drop: () => {
				if (client.lost) return;
				client.lost = true;
				this.socket = undefined;
				ssh.destroy();
				// One that was ended from here waits for the other side's farewell, which a dead line never brings.
				socket?.destroy();
				this.closing = Promise.race([closed, pause(MOST_FOR_CLOSING_MS)]);
				whenLost();
			},
		};
		this.socket = socket;
		this.letTheProcessGo();
		ssh.once('error', client.drop).once('end', client.drop).once('close', client.drop);
		dropped.addEventListener('abort', client.drop);
		return client;
	}

	/** A channel, or nothing when the client turned out to be lost. @throws ClaimError */
	private async forward(client: LoggedIn, { host, port, settings, signal, patienceMs }: Wish): Promise<Duplex | undefined> {
		return await new Promise((resolve, reject) => {
			const giveUp = () => reject(databaseSilent(this.tunnel, settings));
			if (signal.aborted) return giveUp();
			// Goes on when the wish is given up: the next one must not meet the same silence.
			const doubt = setTimeout(() => void this.doubt(client, patienceMs), patienceMs).unref();
			signal.addEventListener('abort', giveUp, { once: true });
			const answered = () => {
				clearTimeout(doubt);
				signal.removeEventListener('abort', giveUp);
			};
			try {
				client.ssh.forwardOut(ORIGIN_HOST, ORIGIN_PORT, host, port, (failure, channel) => {
					answered();
					if (failure) {
						// Without a reason of the server's it is the client that has ended.
						const { reason } = failure as { reason?: unknown };
						if (reason === undefined) resolve(undefined);
						else reject(forwardingFailure(reason, this.tunnel, settings));
					} else if (signal.aborted) channel.destroy();
					else resolve(channel);
				});
			} catch {
				answered();
				client.drop();
				resolve(undefined);
			}
		});
	}

	/** Whether the other side answers at all: the database may be what is silent, and the client is shared. */
	private async doubt(client: LoggedIn, patienceMs: number): Promise<void> {
		client.doubt ??= answers(client.ssh, patienceMs).then((alive) => {
			client.doubt = undefined;
			if (!alive) client.drop();
		});
		await client.doubt;
	}

	private lineOf(client: LoggedIn, bytes: Duplex, hold: Hold, patienceMs: number): TunnelLine {
		client.lines++;
		client.useReports ??= setInterval(() => this.clients.reportUse(client.ssh), USE_REPORT_MS).unref();
		bytes.once('close', () => {
			hold.end();
			client.lines--;
			if (client.lines > 0) return;
			clearInterval(client.useReports);
			client.useReports = undefined;
		});
		return { bytes, ref: () => hold.set(true), unref: () => hold.set(false), doubt: () => void this.doubt(client, patienceMs) };
	}

	private hold(): Hold {
		let isHeld = false;
		let isOver = false;
		const set = (held: boolean) => {
			if (held === isHeld || isOver) return;
			isHeld = held;
			this.holds += held ? 1 : -1;
			this.letTheProcessGo();
		};
		const end = () => {
			set(false);
			isOver = true;
			void this.forgetIfUnused();
		};
		set(true);
		return { set, end };
	}

	private letTheProcessGo(): void {
		if (this.holds > 0) this.socket?.ref();
		else this.socket?.unref();
	}

	private async forgetIfUnused(): Promise<void> {
		await this.closing;
		if (this.client === undefined && this.holds === 0) this.forget();
	}
}

/** One line's part in whether the process stays alive. */
interface Hold {
	set: (held: boolean) => void;
	end: () => void;
}

/** Any answer will do: hardly anything listens at that port of the SSH server, and most servers forbid it. */
async function answers(ssh: SshClient, patienceMs: number): Promise<boolean> {
	return await new Promise((resolve) => {
		const timer = setTimeout(resolve, patienceMs, false).unref();
		try {
			ssh.forwardOut(ORIGIN_HOST, ORIGIN_PORT, '127.0.0.1', 1, (_failure, channel: Duplex | undefined) => {
				clearTimeout(timer);
				channel?.destroy();
				resolve(true);
			});
		} catch {
			resolve(false);
		}
	});
}

async function beforeTheSignal<Result>(promise: Promise<Result>, signal: AbortSignal, failure: () => Error): Promise<Result> {
	return await new Promise((resolve, reject) => {
		const giveUp = () => reject(failure());
		signal.addEventListener('abort', giveUp, { once: true });
		if (signal.aborted) giveUp();
		void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
	});
}

/** A little later than the signal: a client that fails is dropped first, and why is said afterwards. */
async function soonAfter(signal: AbortSignal): Promise<undefined> {
	await new Promise((resolve) => signal.addEventListener('abort', () => setImmediate(resolve)));
	return undefined;
}

async function pause(milliseconds: number): Promise<void> {
	await sleep(milliseconds, undefined, { ref: false });
}

interface Socket {
	ref(): void;
	unref(): void;
	destroy(): void;
}

/** The client does not hand it out. Without it the process stays alive until the idle connection is closed. */
function socketOf(ssh: SshClient): Socket | undefined {
	const { _sock: socket } = ssh as unknown as { _sock?: Partial<Socket> };
	return socket?.ref && socket.unref && socket.destroy ? (socket as Socket) : undefined;
}
