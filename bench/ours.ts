import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import type { ClaimAnswer } from '../store/claim';
import { openClaimStore, type ClaimStore } from '../store/claimStore';
import { makeOwnerToken } from '../store/handle';
import { NO_PAYLOAD, type StoredPayload } from '../store/payload';
import type { Owner } from '../store/record';
import type { ClaimRequest } from '../store/request';
import { aCopyOf, anOutcome, anOwner, aRequest, inShort, ownershipOf, settingsFor } from '../test/store/support/claims';
import type { TestDatabase } from '../test/support/database';
import { CONNECTIONS, type Contestant, type Kind } from './contestant';
import type { Job } from './rounds';

const INSTANCE_ID = randomBytes(32).toString('hex');
const NODE_ID = randomUUID();

/** An execution of its own, its IDs as long as n8n's. */
export function anExecution(): Owner {
	return anOwner({ instanceId: INSTANCE_ID, workflowId: 'kVn3mZq8RtY1sXw5', executionId: String(randomInt(1e6, 1e9)), nodeId: NODE_ID });
}

/** A delivery never seen, with an owner token as the node makes it. */
export function aDelivery(payload: StoredPayload = NO_PAYLOAD): ClaimRequest {
	const ownerToken = makeOwnerToken({ nonce: randomUUID(), executionId: '1', nodeId: NODE_ID, runIndex: 0, itemIndex: 0 });
	return aRequest({ ownerToken, payload });
}

/** @throws Error unless every answer is this one, as `inShort` writes it */
export function demand(answers: readonly ClaimAnswer[], expected: string): void {
	for (const answer of answers) {
		const given = inShort(answer);
		if (given !== expected) throw new Error(`The store answers "${given}" instead of "${expected}"`);
	}
}

/** The store of this package, as the node calls it. */
export class Ours implements Contestant {
	private readonly known: ClaimRequest[] = [];

	constructor(
		readonly store: ClaimStore,
		private readonly payload: () => StoredPayload,
	) {}

	/** @param payload what each delivery says, where that is stored too */
	static open(database: TestDatabase, payload?: () => string): Ours {
		const store = openClaimStore(settingsFor(database, { maxConnections: CONNECTIONS }));
		return new Ours(store, () => (payload ? { json: payload(), complete: true } : NO_PAYLOAD));
	}

	/** Each job is one call of the store; each call that claims is an execution of its own. */
	async jobs(kind: Kind, count: number, perCall = 1): Promise<Job[]> {
		switch (kind) {
			case 'new':
				return this.claims(this.deliver(count), perCall, 'new first_delivery');
			case 'duplicate': {
				await this.know(count);
				const copies = this.known.slice(0, count).map((request) => aCopyOf(request, { ownerToken: aDelivery().ownerToken }));
				return this.claims(copies, perCall, 'duplicate completed');
			}
			case 'completed': {
				const owner = anExecution();
				const answers = await this.store.claim('claim', owner, this.deliver(count));
				const outcomes = answers.map((answer) => anOutcome(ownershipOf(answer), { reference: randomUUID() }));
				return cut(outcomes, perCall).map((portion) => async () => {
					const recorded = await this.store.settle('completed', owner, portion);
					if (recorded.some(({ verdict }) => verdict !== 'recorded')) throw new Error('The store did not record an outcome');
				});
			}
		}
	}

	private claims(requests: readonly ClaimRequest[], perCall: number, expected: string): Job[] {
		return cut(requests, perCall).map((portion) => {
			const owner = anExecution();
			return async () => demand(await this.store.claim('claim', owner, portion), expected);
		});
	}

	/** Deliveries never seen. */
	deliver(count: number): ClaimRequest[] {
		return Array.from({ length: count }, () => aDelivery(this.payload()));
	}

	/** Has so many completed claims, to which copies can come. */
	private async know(count: number): Promise<void> {
		const owner = anExecution();
		const missing = this.deliver(Math.max(0, count - this.known.length));
		const answers = await this.store.claim('claim', owner, missing);
		await this.store.settle('completed', owner, answers.map((answer) => anOutcome(ownershipOf(answer), { reference: randomUUID() })));
		this.known.push(...missing);
	}

	async close(): Promise<void> {
		await this.store.close();
	}
}

/** The items in portions of this size; the last may be smaller. */
function cut<Item>(items: readonly Item[], size: number): Item[][] {
	return Array.from({ length: Math.ceil(items.length / size) }, (_, portion) => items.slice(portion * size, (portion + 1) * size));
}
