import type { Doubt } from './connection/connection';
import { asClaimError, isStoreTrouble, outcomeUnknown, type ClaimError } from './errors';

/**
 * Cuts what is to be done into portions: in one order of identities for all processes (so that two batches do not
 * wait for each other), repeats of an identity in the order of the items, and none beyond a bound. Several are worked
 * on at once. Every item gets exactly one answer.
 */

/** Items per portion at the most. */
const MAX_ITEMS = 500;
/** Characters of payload and other large texts per portion, about. */
const MAX_CHARACTERS = 4 * 1024 * 1024;

/** What is to be done with many items. */
export interface Batch<Item, Answer> {
	/** The identity that an item is about. */
	key: (item: Item) => string;
	/** How much an item adds to its statement. */
	characters: (item: Item) => number;
	/** How many statements run at once. */
	parallel: number;
	/** Puts into `answers` what it finds out; throws what concerns all items that are left. */
	together: (portion: readonly Item[], answers: Map<Item, Answer>, doubt: Doubt) => Promise<void>;
	failed: (error: ClaimError) => Answer;
}

/**
 * The answers, in the order of the items. Never throws: what fails is the answer of the items that it concerns.
 *
 * @param answers gets each answer as soon as it is known
 */
export async function answerEach<Item, Answer>(items: readonly Item[], batch: Batch<Item, Answer>, answers: Map<Item, Answer>): Promise<Answer[]> {
	const inTurn = limited(batch.parallel);
	const work: Work<Item, Answer> = { batch, answers, together: async (portion, doubt) => await inTurn(async () => await batch.together(portion, answers, doubt)) };
	await Promise.all(
		chains(items, batch).map(async (chain) => {
			for (const portion of chain) await answerPortion(work, portion, { inDoubt: false });
		}),
	);
	return items.map((item) => answers.get(item) ?? batch.failed(asClaimError(undefined)));
}

interface Work<Item, Answer> {
	batch: Batch<Item, Answer>;
	answers: Map<Item, Answer>;
	/** As the batch's, within its bound. */
	together: (portion: readonly Item[], doubt: Doubt) => Promise<void>;
}

async function answerPortion<Item, Answer>(work: Work<Item, Answer>, portion: readonly Item[], doubt: Doubt): Promise<void> {
	const { batch, answers, together } = work;
	try {
		await together(portion, doubt);
	} catch (failure) {
		const open = portion.filter((item) => !answers.has(item));
		const error = asClaimError(failure);
		const apart = repeatsOf(open, batch.key);
		if (apart.length > 1 && mayConcernOneItem(error)) {
			await Promise.all(apart.map(async (repeats) => await answerPortion(work, repeats, { ...doubt })));
			return;
		}
		// Of what may have been written, nothing can be said for certain any more, whatever went wrong later.
		const answer = batch.failed(doubt.inDoubt && isStoreTrouble(error.kind) ? outcomeUnknown() : error);
		for (const item of open) answers.set(item, answer);
	}
}

/** A refusal that one item's key or value may have caused: then its neighbours must not share it. */
function mayConcernOneItem(error: ClaimError): boolean {
	// Out of resources (class 53) concerns all: one by one they would only make it worse.
	return error.sqlState !== null && !error.sqlState.startsWith('53') && (error.kind === 'store_busy' || error.kind === 'unexpected' || /^2[23]/.test(error.sqlState));
}

/** Portions, ordered by key; a stable order, so that repeats keep theirs. Where repeats are cut apart, their portions are one chain: the later waits for the earlier. */
function chains<Item>(items: readonly Item[], { key, characters }: Pick<Batch<Item, unknown>, 'key' | 'characters'>): Item[][][] {
	const keyed = items.map((item) => ({ item, key: key(item) })).sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
	const result: Item[][][] = [];
	let size = 0;
	let before: string | null = null;
	for (const { item, key: itsKey } of keyed) {
		const chain = result.at(-1);
		const portion = chain?.at(-1);
		if (chain === undefined || portion === undefined || portion.length === MAX_ITEMS || size + characters(item) > MAX_CHARACTERS) {
			if (chain !== undefined && itsKey === before) chain.push([item]);
			else result.push([[item]]);
			size = characters(item);
		} else {
			portion.push(item);
			size += characters(item);
		}
		before = itsKey;
	}
	return result;
}

/** The items by identity, repeats together; identities in the order of their first items. */
function repeatsOf<Item>(items: readonly Item[], key: (item: Item) => string): Item[][] {
	const groups = new Map<string, Item[]>();
	for (const item of items) {
		const itsKey = key(item);
		const group = groups.get(itsKey);
		if (group) group.push(item);
		else groups.set(itsKey, [item]);
	}
	return [...groups.values()];
}

/** The first item of each identity: a statement may name each only once. */
export function firstOfEach<Item>(items: readonly Item[], key: (item: Item) => string): Item[] {
	return repeatsOf(items, key).map(([first]) => first);
}

/** Lets `limit` works run at once; the others wait for their turn. */
function limited(limit: number): <T>(work: () => Promise<T>) => Promise<T> {
	const waiting: Array<() => void> = [];
	let free = Math.max(1, limit);
	return async (work) => {
		if (free > 0) free--;
		else await new Promise<void>((resolve) => waiting.push(resolve));
		try {
			return await work();
		} finally {
			const next = waiting.shift();
			if (next) next();
			else free++;
		}
	};
}
