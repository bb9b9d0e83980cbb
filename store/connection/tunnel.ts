import { Duplex } from 'node:stream';

/** A line to a server through a tunnel. */
export interface TunnelLine {
	readonly bytes: Duplex;
	/** Keeps the process alive for this line, as a socket's `ref` does. */
	ref(): void;
	unref(): void;
	/** Told when an answer stayed away: looks whether the tunnel answers at all, and gives up one that does not. */
	doubt(): void;
}

/**
 * Opens a line to a server as the far end of the tunnel sees it. When the signal comes, nobody waits any more: the
 * promise is rejected with what was waited for, and a line that comes all the same is closed.
 *
 * @throws ClaimError
 */
export type OpenLine = (host: string, port: number, signal: AbortSignal) => Promise<TunnelLine>;

/**
 * A line through a tunnel in the place of the driver's socket. It is handed over inside this process: a local port
 * would be open to everybody on the machine.
 */
export class TunnelStream extends Duplex {
	private readonly givenUp = new AbortController();
	private opening: Promise<TunnelLine> | undefined;
	private line: TunnelLine | undefined;
	private isReferenced = true;
	private isOver = false;

	constructor(private readonly open: OpenLine) {
		// As a socket does: what the server has closed is closed.
		super({ allowHalfOpen: false });
	}

	connect(port: number, host: string): this {
		this.opening = this.open(host, port, this.givenUp.signal);
		this.opening.then(
			(line) => this.carry(line),
			(failure: Error) => this.destroy(failure),
		);
		return this;
	}

	setNoDelay(): this {
		return this;
	}

	setKeepAlive(): this {
		return this;
	}

	ref(): this {
		this.isReferenced = true;
		this.line?.ref();
		return this;
	}

	unref(): this {
		this.isReferenced = false;
		this.line?.unref();
		return this;
	}

	private carry(line: TunnelLine): void {
		if (this.destroyed) {
			line.bytes.destroy();
			return;
		}
		this.line = line;
		if (!this.isReferenced) line.unref();
		line.bytes.on('data', (chunk: Buffer) => {
			if (!this.push(chunk)) line.bytes.pause();
		});
		line.bytes.on('error', () => this.destroy());
		line.bytes.on('end', () => this.push(null));
		line.bytes.on('close', () => this.closeBehindTheLast());
		this.emit('connect');
	}

	/** The line is gone. What it has brought is read first: the server's last words say why it ended. */
	private closeBehindTheLast(): void {
		this.isOver = true;
		if (this.readableEnded) this.destroy();
		else this.once('end', () => this.destroy());
	}

	override _read(): void {
		this.line?.bytes.resume();
	}

	override _write(chunk: Buffer, encoding: BufferEncoding, done: (failure?: Error | null) => void): void {
		if (this.line === undefined) this.once('connect', () => this._write(chunk, encoding, done));
		else this.line.bytes.write(chunk, encoding, done);
	}

	override _final(done: () => void): void {
		if (this.line === undefined) this.destroy();
		else this.line.bytes.end();
		done();
	}

	override _destroy(failure: Error | null, done: (failure?: Error | null) => void): void {
		this.givenUp.abort();
		// Torn off without a goodbye: whoever waited for an answer has lost patience.
		if (!this.isOver && !this.writableEnded) this.line?.doubt();
		this.line?.bytes.destroy();
		// TLS on top destroys this first and says why afterwards: the driver must not hear of the end before.
		if (this.line !== undefined) setImmediate(() => setImmediate(done, failure));
		// A line that never was is given up for a reason: the driver's own would be that time is over.
		else if (this.opening !== undefined) this.opening.then(() => done(failure), done);
		else done(failure);
	}
}
