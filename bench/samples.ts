import { randomUUID } from 'node:crypto';
import type { ClaimStore } from '../store/claimStore';
import { RECOVERABLE } from '../store/statements/takeDueClaims';
import { anOutcome, aRequest, ownershipOf } from '../test/store/support/claims';
import type { TestDatabase } from '../test/support/database';
import { addDueRows, filledIdentity, rowThatStays } from './fill';
import { aDelivery, anExecution, demand } from './ours';
import { rotated } from './rounds';

/** What can be done to a claim table, each as often as it goes, one at a time; of several tables in turns. */

/** What is sampled. */
export const WHAT = ['new', 'duplicate', 'complete', 'poll', 'purge'] as const;
export type What = (typeof WHAT)[number];

/** Claims that a recovery poll asks for. */
export const POLL_LIMIT = 20;

/** How many turns there are, and how many from one poll, and one purge, to the next. */
export interface Plan {
	readonly turns: number;
	readonly turnsPerPoll: number;
	readonly turnsPerPurge: number;
}

/** Milliseconds of each sample. */
export type Samples = Record<What, number[]>;

/** A claim table that `fillTable` has filled with so many rows, and its store. */
export interface Subject {
	name: string;
	rows: number;
	store: ClaimStore;
	/** The number of the next row that is added by hand. */
	nextRow: number;
	/** Those that were taken last. */
	samples: Samples;
	/** Claims that one purge takes. */
	purgeLimit: number;
}

export function noSamples(): Samples {
	return { new: [], duplicate: [], complete: [], poll: [], purge: [] };
}

/** Takes samples of all tables, and forgets those taken before. @throws Error when an answer is wrong */
export async function takeSamples(database: TestDatabase, subjects: readonly Subject[], plan: Plan): Promise<void> {
	// What is written out later would hit samples of all tables.
	await database.query('CHECKPOINT');
	// The first turn opens connections and does not count.
	for (const subject of subjects) await takeTurn(database, subject, plan, 0);
	for (const subject of subjects) subject.samples = noSamples();
	globalThis.gc?.();
	for (let turn = 1; turn <= plan.turns; turn++) {
		for (const subject of rotated(subjects, turn)) await takeTurn(database, subject, plan, turn);
	}
}

async function takeTurn(database: TestDatabase, subject: Subject, { turnsPerPoll, turnsPerPurge }: Plan, turn: number): Promise<void> {
	const { store, samples, purgeLimit } = subject;
	const measure = async <Result>(what: What, work: () => Promise<Result>): Promise<Result> => {
		const begun = performance.now();
		const result = await work();
		samples[what].push(performance.now() - begun);
		return result;
	};

	const owner = anExecution();
	const delivery = aDelivery();
	const claimed = await measure('new', async () => await store.claim('claim', owner, [delivery]));
	demand(claimed, 'new first_delivery');

	const copy = aRequest({ identity: filledIdentity(rowThatStays(subject.rows)) });
	demand(await measure('duplicate', async () => await store.claim('claim', anExecution(), [copy])), 'duplicate completed');

	const outcome = anOutcome(ownershipOf(claimed[0]), { reference: randomUUID() });
	const [recorded] = await measure('complete', async () => await store.settle('completed', owner, [outcome]));
	if (recorded.verdict !== 'recorded') throw new Error('The store did not record an outcome');

	if (turn % turnsPerPoll === 0) await poll(database, subject, measure);
	if (turn % turnsPerPurge === 0) {
		const { live } = await measure('purge', async () => await store.purge({ what: 'pastRetention', limit: purgeLimit }, false));
		if (live !== purgeLimit) throw new Error(`A purge took ${live} claims instead of ${purgeLimit}`);
	}
}

type Measure = <Result>(what: What, work: () => Promise<Result>) => Promise<Result>;

/** What is taken is replaced, so that no table runs out of work, and completed, as its actions would be. */
async function poll(database: TestDatabase, subject: Subject, measure: Measure): Promise<void> {
	const { store, name } = subject;
	await addDueRows(database, name, subject.nextRow, POLL_LIMIT);
	subject.nextRow += POLL_LIMIT;
	const owner = anExecution();
	const { source, action, environment } = filledIdentity(1);
	const request = { source, action, environment, recover: RECOVERABLE, limit: POLL_LIMIT, leaseSeconds: 300, pollId: `poll-${randomUUID()}` };
	const taken = await measure('poll', async () => await store.takeDue(owner, request));
	if (taken.length !== POLL_LIMIT) throw new Error(`A recovery poll took ${taken.length} claims instead of ${POLL_LIMIT}`);
	await store.settle('completed', owner, taken.map(({ record }) => anOutcome(record)));
}
