import { Pool, type PoolClient } from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClaimError, outcomeUnknown } from '../errors';
import { connectionFailure, isRefusal, isSafeToRepeat, sqlStateOf, statementFailure } from './failures';
import type { ConnectionSettings } from './settings';

/** A row as the server writes it: every value is text or null, whatever type parsers other packages set. */
export type Row = Record<string, string | null>;

export interface Statement {
	text: string;
	values: readonly unknown[];
	/** Whether it changes anything: then a missing answer leaves doubt, and it must bear being sent twice. */
	writes: boolean;
	/** Told when an answer stays away, also if a later sending is answered. */
	doubt?: Doubt;
}

/** Whether something may have been written without its being known; whoever is in doubt must not say "certainly not". */
export interface Doubt {
	inDoubt: boolean;
}

/** How often one statement is sent at the most, the first time included. */
const MAX_SENDINGS = 4;
/** Idle connections go after this many milliseconds, so that neither server nor firewall drops them first. */
const IDLE_MS = 10_000;
/** What pg-pool says when no connection became free in time; it has no code to tell this from a failed connect. */
const POOL_WAIT_MESSAGE = 'timeout exceeded when trying to connect';

/** The pool of one credential in one process; owns the connections and nothing else. */
export class Connection {
	/** Milliseconds that one statement waits for another session's lock: less than the statement may take, so that the server refuses first. */
	readonly lockTimeoutMs: number;
	private readonly pool: Pool;
	private readonly connectedAt = new WeakMap<PoolClient, number>();
	private distrustOlderThan = 0;

	/** @param onDrop is told when the server drops an idle connection; one line for the log, no secrets in it */
	constructor(
		readonly settings: ConnectionSettings,
		onDrop: (line: string) => void = () => {},
	) {
		this.lockTimeoutMs = Math.max(50, Math.floor(settings.timeoutMs * 0.8));
		this.pool = new Pool({
			host: settings.host,
			port: settings.port,
			database: settings.database,
			user: settings.user,
			password: settings.password,
			ssl: settings.ssl,
			options: settings.options,
			application_name: 'n8n-nodes-idempotent-claim',
			max: settings.maxConnections,
			connectionTimeoutMillis: settings.timeoutMs,
			idleTimeoutMillis: IDLE_MS,
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
	 * one more timeout; a refusal because of other transactions (40001, 40P01) likewise.
	 *
	 * @throws ClaimError; a kind other than `outcome_unknown` means that the statement certainly changed nothing
	 */
	async send(statement: Statement): Promise<Row[]> {
		const { timeoutMs } = this.settings;
		let unanswered = false;
		let deadline = Infinity;
		for (let sending = 1; ; sending++) {
			const lastSending = sending === MAX_SENDINGS || performance.now() >= deadline;
			let client: PoolClient;
			try {
				client = await this.checkOut();
			} catch (failure) {
				if (!unanswered) throw failure;
				if (lastSending) throw noAnswer(statement);
				await pause(sending);
				continue;
			}
			const patience = Math.max(1, Math.min(timeoutMs, deadline - performance.now()));
			const query = { text: statement.text, values: [...statement.values], query_timeout: Math.ceil(patience) };
			try {
				const { rows } = await client.query<Row>(query);
				client.release();
				return rows;
			} catch (failure) {
				const refused = isRefusal(failure);
				// An unfinished statement must not meet the next user of its connection.
				client.release(!refused);
				if (refused) {
					if (isSafeToRepeat(failure) && !lastSending) {
						await pause(sending);
						continue;
					}
					throw unanswered ? noAnswer(statement) : statementFailure(failure, this.settings);
				}
				if (!unanswered) deadline = performance.now() + timeoutMs;
				unanswered = true;
				if (statement.doubt) statement.doubt.inDoubt = true;
				this.distrustOlderThan = performance.now();
				if (lastSending) throw noAnswer(statement);
				await pause(sending);
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

/** A short, growing, uneven wait, so that statements that hindered each other do not meet again. */
async function pause(sending: number): Promise<void> {
	await sleep(Math.random() * 20 * 2 ** sending);
}

function noAnswer(statement: Statement): ClaimError {
	if (statement.writes) return outcomeUnknown();
	return new ClaimError('store_unreachable', 'PostgreSQL did not answer', { hint: 'Nothing was written for this item; it can be tried again later.' });
}

function poolExhausted(settings: ConnectionSettings): ClaimError {
	return new ClaimError('store_busy', `All ${settings.maxConnections} connections of this credential are in use`, {
		hint: 'Nothing was written for this item; it can be tried again later. Raise Maximum Connections if it happens often.',
	});
}
