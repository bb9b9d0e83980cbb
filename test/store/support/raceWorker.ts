import { randomUUID } from 'node:crypto';
import { openClaimStore } from '../../../store/claimStore';
import type { ConnectionSettings } from '../../../store/connection/settings';
import { anIdentity, anOwner, aRequest, inShort } from './claims';

/**
 * One process of a race. Its parent sends an order; it answers `ready` once its connection is open, waits for
 * `go`, claims, and reports how often each answer was given.
 */

export interface RaceOrder {
	settings: ConnectionSettings;
	/** What this process claims, in calls of one or many items; several calls run at once. */
	calls: string[][];
	/** Calls at the same time. */
	parallel: number;
}

export interface RaceReport {
	/** How often each answer was given, in short. */
	answers: Record<string, number>;
	winners: string[];
}

const message = async () => await new Promise<unknown>((resolve) => process.once('message', resolve));

async function race(): Promise<void> {
	const { settings, calls, parallel } = (await message()) as RaceOrder;
	const store = openClaimStore(settings);
	// The table is made and a connection is open before the start: the race is for the keys.
	await store.openClaimsOf(anOwner());
	process.send?.('ready');
	await message();

	const report: RaceReport = { answers: {}, winners: [] };
	let next = 0;
	const work = async () => {
		while (next < calls.length) {
			const keys = calls[next++];
			const requests = keys.map((deliveryId) => aRequest({ identity: anIdentity({ deliveryId }), ownerToken: randomUUID() }));
			for (const [index, answer] of (await store.claim('claim', anOwner(), requests)).entries()) {
				report.answers[inShort(answer)] = (report.answers[inShort(answer)] ?? 0) + 1;
				if (answer.verdict === 'new') report.winners.push(keys[index]);
			}
		}
	};
	await Promise.all(Array.from({ length: parallel }, work));
	await store.close();
	process.send?.(report);
	process.disconnect();
}

void race();
