import { connect, createServer, type Server, type Socket } from 'node:net';

/** The way from n8n to the claim store, which can be cut and mended. */
export interface StoreLine {
	/** Every open connection drops, and new ones are refused: as when the database is down. */
	cut: () => Promise<void>;
	mend: () => Promise<void>;
}

/** Listens on `port` of the loopback and passes everything on to `targetPort`. */
export async function openStoreLine(port: number, targetPort: number): Promise<StoreLine> {
	const open = new Set<Socket>();
	let server: Server | undefined;

	const pass = (incoming: Socket) => {
		const outgoing = connect(targetPort, '127.0.0.1');
		for (const [from, to] of [[incoming, outgoing], [outgoing, incoming]] as const) {
			open.add(from);
			from.pipe(to);
			from.on('error', () => to.destroy());
			from.on('close', () => {
				open.delete(from);
				to.destroy();
			});
		}
	};

	const line: StoreLine = {
		async cut() {
			const closing = server;
			server = undefined;
			if (!closing) return;
			const closed = new Promise((resolve) => closing.close(resolve));
			for (const socket of open) socket.destroy();
			await closed;
		},
		async mend() {
			if (server) return;
			const opening = createServer(pass);
			await new Promise<void>((resolve, reject) => {
				opening.once('error', reject);
				opening.listen(port, '127.0.0.1', resolve);
			});
			server = opening;
		},
	};
	await line.mend();
	return line;
}
