import { Client, Pool, type ClientConfig, type PoolClient } from 'pg';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClaimError, outcomeUnknown } from '../errors';
import { connectionFailure, isHeldByAnother, isPreparedElsewhere, isRefusal, isSafeToRepeat, sqlStateOf, statementFailure } from './failures';
import { Places } from './places';
import type { ConnectionSettings } from './settings';
import { TunnelStream, type OpenLine } from './tunnel';

/** A row as the server writes it: every value is text or null, whatever type parsers other packages set. */
export type Row = Record<string, string | null>;

export interface Statement {
	text: string;
	/** The parameters; of a statement that writes, from the second on: the first is its `BOUNDED_WAIT`. */
	values: readonly unknown[];
	/** Whether it changes anything: then a missing answer leaves doubt, and it must bear being sent twice. */
	writes: boolean;
	/** Whether it is about several items: a key that another session holds is then reported soon, for the caller to take them apart. */
	separable?: boolean;
	/** Whether it is one of the few that are sent for single claims, again and again: the server then parses it once in each session. */
	prepare?: boolean;
	/** Told when an answer stays away, also if a later sending is answered. */
	doubt?: Doubt;
	/** Longest wait for the answer, in milliseconds, where it may take longer than the settings say. */
	timeoutMs?: number;
}

/** Whether something may have been written without its being known; whoever is in doubt must not say "certainly not". */
export interface Doubt {
	inDoubt: boolean;
}

/** How often one statement is sent at the most, the first time included. */
const MAX_SENDINGS = 4;
/** Idle connections go after this many milliseconds, so that neither server nor firewall drops them first. */
const IDLE_MS = 10_000;
/** However busy: plans of prepared statements, made when the table was small, end with their session. */
const LIFETIME_SECONDS = 600;
/** Milliseconds that any statement may wait for another session's lock; who waits longer needs one of the places for that. */
const BRIEF_LOCK_WAIT_MS = 50;
/** The same for a statement about several items, which is worth more patience: it is taken apart afterwards. */
const SEPARABLE_LOCK_WAIT_MS = 500;
/** What pg-pool says when no connection became free in time; it has no code to tell this from a failed connect. */
const POOL_WAIT_MESSAGE = 'timeout exceeded when trying to connect';
/** Milliseconds; it is asked on a line that has just been opened or proven. */
const CANCEL_TIMEOUT_MS = 2000;
const APPLICATION_NAME = 'n8n-nodes-idempotent-claim';

/** The pool of one credential in one process; owns the connections and nothing else. */
export class Connection {
	/** Milliseconds that one statement waits for another session's lock: less than the statement may take, so that the server refuses first. */
	private readonly lockTimeoutMs: number;
	/** Half of the connections may be waiting for locks at once: a held key must not starve the others. */
	private readonly placesToWait: Places;
	private readonly pool: Pool;
	private readonly connectedAt = new WeakMap<PoolClient, number>();
	private distrustOlderThan = 0;
	/** Until a pooler hands a session's prepared statements to others. */
	private mayPrepare = true;

	/**
	 * @param onDrop is told when the server drops an idle connection; one line for the log, no secrets in it
	 * @param openLine the way through the tunnel that the settings ask for
	 */
	constructor(
		readonly settings: ConnectionSettings,
		onDrop: (line: string) => void = () => {},
		openLine?: OpenLine,
	) {
		if (settings.tunnel && !openLine) throw new Error('These settings need a way through their tunnel');
		this.lockTimeoutMs = Math.max(50, Math.floor(settings.timeoutMs * 0.8));
		this.placesToWait = new Places(Math.max(1, Math.floor(settings.maxConnections / 2)));
		this.pool = new Pool({
			Client: ClientThatHangsUp,
			// The driver looks up no name and opens no socket then.
			stream: openLine && (() => new TunnelStream(openLine)),
			host: settings.host,
			port: settings.port,
			database: settings.database,
			user: settings.user,
			password: settings.password,
			ssl: settings.ssl,
			options: settings.options,
			application_name: APPLICATION_NAME,
			max: settings.maxConnections,
			connectionTimeoutMillis: settings.timeoutMs,
			idleTimeoutMillis: IDLE_MS,
			maxLifetimeSeconds: LIFETIME_SECONDS,
			allowExitOnIdle: true,
			keepAlive: true,
			types: { getTypeParser: () => (value: string) => value },
		});
		this.pool.on('connect', (client) => {
			this.connectedAt.set(client, performance.now());
			// A client in use reports a dropped line here too; its statement fails by itself. Without a listener the process would end.
			client.on('error', () => {});
		});
		this.pool.on('error', (failure) => {
			this.distrustOlderThan = performance.now();
			onDrop(`An idle connection to the claim store was dropped (${sqlStateOf(failure) ?? 'line cut'}); the next claim opens a new one`);
		});
	}

	/**
	 * Sends one statement in autocommit. An unanswered one is sent again unchanged, on another connection, within
	 * one more timeout; a refusal because of other transactions (40001, 40P01) likewise. A key that another session
	 * holds is waited for at most 0.8 timeouts.
	 *
	 * @throws ClaimError; a kind other than `outcome_unknown` means that the statement certainly changed nothing
	 */
	async send(statement: Statement): Promise<Row[]> {
		const briefly = Math.min(statement.separable ? SEPARABLE_LOCK_WAIT_MS : BRIEF_LOCK_WAIT_MS, this.lockTimeoutMs / 2);
		try {
			return await this.sendUntilAnswered(statement, briefly);
		} catch (failure) {
			if (statement.separable || !isHeldByAnother(failure)) throw failure;
		}
		const end = performance.now() + this.lockTimeoutMs - briefly;
		const hasPlace = await this.placesToWait.take(end - performance.now());
		try {
			// Without a place it is tried once more, briefly: the key may be free by now.
			return await this.sendUntilAnswered(statement, hasPlace ? Math.max(briefly, end - performance.now()) : briefly);
		} finally {
			if (hasPlace) this.placesToWait.leave();
		}
	}

	private async sendUntilAnswered(statement: Statement, lockWaitMs: number): Promise<Row[]> {
		/** When to stop asking; set by the first missing answer. */
		let deadline = Infinity;
		/** The server's process that may still be at work on an earlier sending. */
		let abandoned: number | undefined;
		let sendings = 0;
		for (let round = 1; ; round++) {
			let client: PoolClient;
			try {
				client = await this.checkOut();
				if (abandoned !== undefined) abandoned = await endIfItWaits(client, abandoned);
			} catch (failure) {
				// No connection leaves an earlier sending as doubtful as it was: a server that restarts is waited for.
				if (deadline === Infinity) throw failure;
				if (performance.now() >= deadline) throw noAnswer(statement);
				await pause(round);
				continue;
			}
			sendings++;
			const patienceMs = Math.max(1, Math.min(statement.timeoutMs ?? this.settings.timeoutMs, deadline - performance.now()));
			const boundedWait = statement.writes ? [String(Math.ceil(Math.min(lockWaitMs, Math.max(50, patienceMs * 0.8))))] : [];
			const name = statement.prepare && this.mayPrepare ? nameOf(statement.text) : undefined;
			const query = { name, text: statement.text, values: [...boundedWait, ...statement.values], query_timeout: Math.ceil(patienceMs) };
			try {
				const { rows } = await client.query<Row>(query);
				client.release();
				return rows;
			} catch (failure) {
				const refused = isRefusal(failure);
				// An unfinished statement must not meet the next user of its connection.
				client.release(!refused);
				const last = sendings === MAX_SENDINGS || performance.now() >= deadline;
				if (name !== undefined && isPreparedElsewhere(failure)) {
					this.mayPrepare = false;
					continue;
				}
				if (refused) {
					if (isSafeToRepeat(failure) && !last) {
						await pause(round);
						continue;
					}
					throw deadline === Infinity ? statementFailure(failure, this.settings) : noAnswer(statement);
				}
				if (deadline === Infinity) deadline = performance.now() + this.settings.timeoutMs;
				if (statement.doubt) statement.doubt.inDoubt = true;
				this.distrustOlderThan = performance.now();
				abandoned = processOf(client);
				if (last) {
					void this.endIfItWaitsLater(abandoned);
					throw noAnswer(statement);
				}
				await pause(round);
			}
		}
	}

	/**
	 * Runs statements in one transaction on one connection; rolled back when `work` throws.
	 *
	 * @throws ClaimError, or whatever `work` throws
	 */
	async transaction<T>(work: (send: (text: string, values?: unknown[]) => Promise<Row[]>) => Promise<T>): Promise<T> {
		const client = await this.checkOut();
		let healthy = true;
		const send = async (text: string, values: unknown[] = []): Promise<Row[]> => {
			try {
				return (await client.query<Row>({ text, values, query_timeout: this.settings.timeoutMs } as { text: string; values: unknown[] })).rows;
			} catch (failure) {
				if (isRefusal(failure)) throw statementFailure(failure, this.settings);
				healthy = false;
				throw new ClaimError('store_unreachable', 'The line to PostgreSQL was lost', { hint: 'Try again later.' });
			}
		};
		try {
			// Whatever the role's default: what another session committed while this one waited must be seen.
			await send('BEGIN ISOLATION LEVEL READ COMMITTED');
			const result = await work(send);
			await send('COMMIT');
			return result;
		} catch (failure) {
			if (healthy) await send('ROLLBACK');
			throw failure;
		} finally {
			client.release(!healthy);
		}
	}

	/** Closes idle connections now and others when they come back. The pool cannot be used afterwards. */
	async close(): Promise<void> {
		await this.pool.end();
	}

	/** For the last sending, which nobody waits for any more. */
	private async endIfItWaitsLater(process: number | undefined): Promise<void> {
		if (process === undefined) return;
		try {
			const client = await this.checkOut();
			await endIfItWaits(client, process);
			client.release();
		} catch {
			// Then the server ends it: at the latest when what it waits for is free and its client turns out to be gone.
		}
	}

	private async checkOut(): Promise<PoolClient> {
		for (;;) {
			let client: PoolClient;
			try {
				client = await this.pool.connect();
			} catch (failure) {
				const waitedInVain = failure instanceof Error && failure.message === POOL_WAIT_MESSAGE;
				throw waitedInVain ? poolExhausted(this.settings) : connectionFailure(failure, this.settings);
			}
			// Older than the last broken line: it may be broken as well, and would only be found out by a timeout.
			if ((this.connectedAt.get(client) ?? 0) >= this.distrustOlderThan) return client;
			client.release(true);
		}
	}
}

/** The driver leaves the line open when it ends a login by itself (no password given); the server would keep it for a minute. */
class ClientThatHangsUp extends Client {
	private readonly line: DriverLine;
	private readonly tunnel: TunnelStream | undefined;

	constructor(config?: ClientConfig) {
		super(config);
		this.line = (this as unknown as { connection: DriverLine }).connection;
		// Looked at now: TLS puts a stream of its own in this place.
		if (this.line.stream instanceof TunnelStream) this.tunnel = this.line.stream;
	}

	/** The pool says when the process need not stay alive for this client; TLS over a tunnel does not pass that on. */
	ref(): void {
		this.line.ref();
		this.tunnel?.ref();
	}

	unref(): void {
		this.line.unref();
		this.tunnel?.unref();
	}

	override connect(): Promise<Client>;
	override connect(callback: ConnectCallback): void;
	override connect(callback?: ConnectCallback): Promise<Client> | void {
		const connected = super.connect().catch((failure: unknown) => {
			void this.end();
			throw failure;
		});
		if (callback === undefined) return connected;
		const report = callback as (failure: Error | null, client?: Client) => void;
		connected.then((client) => report(null, client), report);
	}
}

/** The driver's own object behind a client; its types do not name it. */
interface DriverLine {
	stream: unknown;
	ref(): void;
	unref(): void;
}

type ConnectCallback = ((failure: Error) => void) | ((failure: null, client: Client) => void);

/** The server's process behind a client; the driver's types do not name it. */
function processOf(client: PoolClient): number | undefined {
	return (client as { processID?: number }).processID;
}

/**
 * Cancels a statement that waits for a lock and whose client has gone: only the wait for a row is bounded inside a
 * statement, the one for the whole table is not, and sessions without a client would pile up behind it. What does not
 * wait is left alone: it may be committing.
 */
async function endIfItWaits(client: PoolClient, process: number): Promise<undefined> {
	const text = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
		 WHERE pid = $1 AND usename = current_user AND application_name = $2 AND wait_event_type = 'Lock'`;
	const query = { text, values: [process, APPLICATION_NAME], query_timeout: CANCEL_TIMEOUT_MS };
	try {
		await client.query(query);
	} catch (failure) {
		client.release(true);
		throw failure;
	}
}

/**
 * The name of a prepared statement. Equal names are equal texts, whoever prepared them: behind a pooler that might be
 * another process, with another version of this package.
 */
function nameOf(text: string): string {
	let name = names.get(text);
	if (name === undefined) {
		name = `claim_${createHash('sha256').update(text).digest('hex').slice(0, 40)}`;
		names.set(text, name);
	}
	return name;
}

/** By text; some dozen for each claim table. */
const names = new Map<string, string>();

/** A short, growing, uneven wait, so that statements that hindered each other do not meet again. */
async function pause(round: number): Promise<void> {
	await sleep(Math.random() * Math.min(500, 20 * 2 ** round));
}

function noAnswer(statement: Statement): ClaimError {
	if (statement.writes) return outcomeUnknown();
	return new ClaimError('store_unreachable', 'PostgreSQL did not answer', { hint: 'Nothing was written for this item; it can be tried again later.' });
}

function poolExhausted(settings: ConnectionSettings): ClaimError {
	return new ClaimError('store_busy', `None of the ${settings.maxConnections} connections of this credential became free in time`, {
		hint: 'Nothing was written for this item; it can be tried again later. If it happens often, the server answers slowly, or Maximum Connections is too low.',
	});
}
