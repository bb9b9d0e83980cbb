import { Client } from 'pg';
import { openClaimStore, type ClaimStore } from '../../store/claimStore';
import type { TestDatabase } from '../support/database';
import { startProxy, type Proxy } from '../support/proxy';
import { anOwner, settingsFor } from '../store/support/claims';
import { STORES, type Fault } from './steps';

/** What histories that follow each other use: stores with connections of their own, as several n8n processes have, and a way past them. */
export interface Lane {
	readonly table: string;
	/** The last one's line goes through a proxy. */
	readonly stores: readonly ClaimStore[];
	/** Gives up soon; its line goes through a proxy as well. */
	readonly impatient: ClaimStore;
	query<Row extends object>(sql: string, values: unknown[]): Promise<Row[]>;
	/** Runs `work` while the proxied store's line, or the impatient one's, has that fault. */
	withFault<T>(fault: Fault | null, work: () => Promise<T>): Promise<T>;
	/** Runs `one` with the proxied store, and `other` while that statement of it is held back; one that never comes is not waited for. */
	withHeld<T>(text: string, one: () => Promise<T>, other: () => Promise<T>): Promise<[T, T]>;
	close(): Promise<void>;
}

/** Longer than any test machine is busy: only a fault keeps an answer away. */
const PATIENT_MS = 30_000;
/** As long as a server stays away that is asked for a missing answer. */
const IMPATIENT_MS = 700;

/** @param table of this lane alone: a purge is of the whole table */
export async function openLane(database: TestDatabase, table: string): Promise<Lane> {
	const { host, port, user, password } = database;
	const admin = new Client({ host, port, user, password, database: database.database });
	await admin.connect();
	const [proxy, proxyOfImpatient] = [await startProxy(database), await startProxy(database)];
	const through = ({ port: proxied }: Proxy, timeoutMs: number) => openClaimStore(settingsFor(database, { table, host: '127.0.0.1', port: proxied, timeoutMs, maxConnections: 4 }));
	const direct = () => openClaimStore(settingsFor(database, { table, timeoutMs: PATIENT_MS, maxConnections: 4 }));
	const stores = [...Array.from({ length: STORES - 1 }, direct), through(proxy, PATIENT_MS)];
	const impatient = through(proxyOfImpatient, IMPATIENT_MS);
	// Connected and past the look at the table, so that what is cut is a statement of the history.
	for (const store of [...stores, impatient]) await store.openClaimsOf(anOwner());

	return {
		table,
		stores,
		impatient,
		query: async <Row extends object>(sql: string, values: unknown[]) => (await admin.query<Row>(sql, values)).rows,
		async withFault(fault, work) {
			if (fault === null) return await work();
			const { at, fate, times, serverGone } = fault;
			const line = serverGone ? proxyOfImpatient : proxy;
			const order = () => (fate === 'loseAnswer' ? line.loseAnswerTo(at) : line.cutBefore(at));
			let gone: Promise<void> | undefined;
			if (serverGone && times === 2) line.loseAnswerTo('INSERT INTO');
			if (serverGone) void order().happened.then(() => (gone = line.refuse()));
			else for (let nth = 0; nth < times; nth++) order();
			try {
				return await work();
			} finally {
				line.forgetOrders();
				await gone;
				if (serverGone) await line.forward();
			}
		},
		async withHeld(text, one, other) {
			const held = proxy.hold(text);
			const first = one();
			await Promise.race([held.happened, first]);
			const second = await other();
			held.release();
			const answers = await first;
			proxy.forgetOrders();
			return [answers, second];
		},
		async close() {
			await Promise.all([...stores, impatient].map(async (store) => await store.close()));
			await Promise.all([proxy.close(), proxyOfImpatient.close(), admin.end()]);
		},
	};
}
