import { readdirSync } from 'node:fs';
import { openClaimStore } from '../../../store/claimStore';
import type { ConnectionSettings } from '../../../store/connection/settings';
import { aCopyOf, anOutcome, anOwner, aRequest, inShort } from '../../store/support/claims';

/**
 * A process that claims for a long time and says what it holds on to. Started with --expose-gc; ends by itself, with
 * its pool open, when it has nothing more to do.
 */

export interface ClaimingOrder {
	settings: ConnectionSettings;
	/** Deliveries until each report. */
	reportsAt: number[];
	/** Deliveries per call. */
	batch: number;
	/** Calls of one delivery each, several at once, among them. */
	singles: number;
}

export interface ClaimingReport {
	claims: number;
	/** How often each answer was given. */
	answers: Record<string, number>;
	/** Bytes in use after a garbage collection. */
	heap: number;
	/** Sockets, pipes and files that are open. */
	descriptors: number;
	/** Timers and requests that are pending, counted by kind. */
	pending: Record<string, number>;
}

const SINGLES_AT_ONCE = 20;

process.once('message', (order: ClaimingOrder) => void claimOn(order));

async function claimOn({ settings, reportsAt, batch, singles }: ClaimingOrder): Promise<void> {
	const store = openClaimStore(settings);
	let answers: Record<string, number> = {};
	const note = (answer: string) => (answers[answer] = (answers[answer] ?? 0) + 1);
	const owner = anOwner();

	const handle = async (count: number) => {
		const requests = Array.from({ length: count }, () => aRequest());
		const claimed = await store.claim('claim', owner, requests);
		for (const answer of claimed) note(inShort(answer));
		// One in ten is completed, and comes again.
		const some = Math.ceil(count / 10);
		const outcomes = claimed.slice(0, some).flatMap((answer) => (answer.verdict === 'new' ? [anOutcome(answer.record)] : []));
		for (const { verdict } of await store.settle('completed', owner, outcomes)) note(verdict);
		const copies = requests.slice(0, some).map((request) => aCopyOf(request));
		for (const answer of await store.claim('claim', anOwner(), copies)) note(inShort(answer));
	};

	let claims = 0;
	for (const goal of reportsAt) {
		for (let left = singles; left > 0 && claims < goal; left -= SINGLES_AT_ONCE) {
			await Promise.all(Array.from({ length: SINGLES_AT_ONCE }, async () => await handle(1)));
			claims += SINGLES_AT_ONCE;
		}
		while (claims < goal) {
			await handle(Math.min(batch, goal - claims));
			claims += Math.min(batch, goal - claims);
		}
		process.send?.(report(claims, answers));
		answers = {};
	}
	process.disconnect();
}

function report(claims: number, answers: Record<string, number>): ClaimingReport {
	// Twice: what the first one finalises, the second one frees.
	globalThis.gc?.();
	globalThis.gc?.();
	const pending: Record<string, number> = {};
	for (const kind of process.getActiveResourcesInfo()) pending[kind] = (pending[kind] ?? 0) + 1;
	return { claims, answers, heap: process.memoryUsage().heapUsed, descriptors: readdirSync('/proc/self/fd').length, pending };
}
