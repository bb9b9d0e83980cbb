import { setTimeout as sleep } from 'node:timers/promises';
import type { TestDatabase } from '../../support/database';

const MILLISECONDS_BETWEEN_LOOKS = 50;

/** The package's sessions in this database as the server counts them, by the role that they logged in with. */
export async function sessionsByRole(database: TestDatabase, condition = 'true'): Promise<Record<string, number>> {
	const rows = await database.query<{ role: string; count: number }>(
		`SELECT usename AS role, count(*)::int AS count FROM pg_stat_activity
		  WHERE datname = current_database() AND application_name = 'n8n-nodes-idempotent-claim' AND ${condition} GROUP BY usename`,
	);
	return Object.fromEntries(rows.map(({ role, count }) => [role, count]));
}

export async function sessions(database: TestDatabase, condition = 'true'): Promise<number> {
	return Object.values(await sessionsByRole(database, condition)).reduce((sum, count) => sum + count, 0);
}

/** Looks again and again until it is so. @throws Error that says what was waited for, after so many seconds */
export async function until(what: string, seconds: number, holds: () => Promise<boolean>): Promise<void> {
	const deadline = Date.now() + seconds * 1000;
	while (!(await holds())) {
		if (Date.now() > deadline) throw new Error(`Waited ${seconds} s in vain until ${what}`);
		await sleep(MILLISECONDS_BETWEEN_LOOKS);
	}
}

/** The most sessions of each role at any moment while `work` goes on. */
export async function mostSessionsDuring<Result>(database: TestDatabase, work: Promise<Result>): Promise<{ result: Result; most: Record<string, number> }> {
	const most: Record<string, number> = {};
	let done = false;
	const ended = work.finally(() => (done = true));
	while (!done) {
		for (const [role, count] of Object.entries(await sessionsByRole(database))) most[role] = Math.max(most[role] ?? 0, count);
	}
	return { result: await ended, most };
}
