import type { DestinationClient } from '../../sandbox/destination';
import { newEvent, type LeadEvent } from '../../sandbox/sender';
import { countBy } from '../../test/support/counting';
import { timeOf } from '../rounds';
import type { Subject } from './place';

/** How much one guard gets in one round. */
export interface Load {
	/** Deliveries that come as copies, one delivery after the other. */
	readonly copied: number;
	/** Copies of each of them, all at once. */
	readonly copies: number;
	/** Deliveries without copies. */
	readonly paced: number;
	/** How many of those are under way at any moment. */
	readonly atOnce: number;
	/** How many of those come once more, when all of them have been answered. */
	readonly again: number;
}

/** What was seen of one guard in one round. */
export interface Observation {
	/** Of each copied delivery, how often it was acted upon. */
	readonly copied: number[];
	/** What the senders of those copies were told. */
	readonly told: string[];
	/** Milliseconds from a paced delivery to its answer. */
	readonly latencies: number[];
	/** Milliseconds until all of them had one. */
	readonly time: number;
	/** What their senders were told. */
	readonly pacedTold: string[];
	/** Of each paced delivery, how often it was acted upon. */
	readonly paced: number[];
	/** The same for those that came once more, after that. */
	readonly again: number[];
}

/** Sends a round's load to one guard. The destination is looked at when n8n is done with all of it. */
export async function sendLoad({ url, settled }: Subject, destination: DestinationClient, load: Load): Promise<Observation> {
	const copied = aBatch(load.copied);
	const told: string[] = [];
	for (const event of copied) {
		await timeOf(Array.from({ length: load.copies }, () => async () => void told.push(await send(url, event))), load.copies);
	}
	await settled();

	const paced = aBatch(load.paced);
	const latencies: number[] = [];
	const pacedTold: string[] = [];
	const deliver = (event: LeadEvent) => async () => {
		const begun = performance.now();
		pacedTold.push(await send(url, event));
		latencies.push(performance.now() - begun);
	};
	const time = await timeOf(paced.map(deliver), load.atOnce);
	await settled();
	const pacedActions = await actionsOf(destination, paced);

	const again = paced.slice(0, load.again);
	await timeOf(again.map((event) => async () => void (await send(url, event))), load.atOnce);
	await settled();
	const againActions = (await actionsOf(destination, paced)).slice(0, load.again);

	return { copied: await actionsOf(destination, copied), told, latencies, time, pacedTold, paced: pacedActions, again: againActions };
}

/** Deliveries that share an address nobody else has, so that the destination can be asked for all of them at once. */
function aBatch(count: number): LeadEvent[] {
	const { lead } = newEvent();
	return Array.from({ length: count }, () => ({ ...newEvent(), lead }));
}

/** @returns the status of the answer, or that there was none */
async function send(url: string, event: LeadEvent): Promise<string> {
	try {
		const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(event) });
		await response.arrayBuffer();
		return String(response.status);
	} catch {
		return 'no answer';
	}
}

/** Of each delivery of a batch, how many leads it made. */
async function actionsOf(destination: DestinationClient, batch: readonly LeadEvent[]): Promise<number[]> {
	if (batch.length === 0) return [];
	const counts = countBy(await destination.leads({ email: batch[0].lead.email }), ({ deliveryId }) => deliveryId);
	return batch.map(({ id }) => counts[id] ?? 0);
}
