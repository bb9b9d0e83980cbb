import type { Doubt } from './connection/connection';
import { asClaimError, isStoreTrouble, outcomeUnknown, type ClaimError } from './errors';

/**
 * Cuts what is to be done into portions: in one order of identities for all processes (so that two batches do not
 * wait for each other), repeats of an identity in the order of the items, and none beyond a bound. Every item gets
 * exactly one answer.
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
	/** How many statements run at once where a portion is taken apart. */
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
	for (const portion of portions(items, batch)) await answerPortion(batch, portion, answers, { inDoubt: false });
	return items.map((item) => answers.get(item) ?? batch.failed(asClaimError(undefined)));
}

async function answerPortion<Item, Answer>(batch: Batch<Item, Answer>, portion: readonly Item[], answers: Map<Item, Answer>, doubt: Doubt): Promise<void> {
	try {
		await batch.together(portion, answers, doubt);
	} catch (failure) {
		const open = portion.filter((item) => !answers.has(item));
		const error = asClaimError(failure);
		const apart = repeatsOf(open, batch.key);
		if (apart.length > 1 && mayConcernOneItem(error)) {
			await eachLimited(apart, batch.parallel, async (repeats) => await answerPortion(batch, repeats, answers, { ...doubt }));
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

/** Ordered by key; a stable order, so that repeats keep theirs. */
function portions<Item>(items: readonly Item[], { key, characters }: Pick<Batch<Item, unknown>, 'key' | 'characters'>): Item[][] {
	const keyed = items.map((item) => ({ item, key: key(item) })).sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
	const result: Item[][] = [];
	let size = 0;
	for (const { item } of keyed) {
		const portion = result.at(-1);
		if (portion === undefined || portion.length === MAX_ITEMS || size + characters(item) > MAX_CHARACTERS) {
			result.push([item]);
			size = characters(item);
		} else {
			portion.push(item);
			size += characters(item);
		}
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

/** Runs `work` on every item, at most `limit` at a time. */
async function eachLimited<T>(items: readonly T[], limit: number, work: (item: T) => Promise<void>): Promise<void> {
	const queue = [...items];
	const worker = async () => {
		for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
	};
	await Promise.all(Array.from({ length: Math.max(1, limit) }, worker));
}
