import { claimDeliveries, type ClaimAnswer } from './claim';
import { Connection } from './connection/connection';
import { settingsKey, type ConnectionSettings } from './connection/settings';
import type { OutcomeKind } from './decisions';
import type { Ownership } from './handle';
import { settleClaims, type OutcomeAnswer } from './outcome';
import type { ClaimRecord, Operation, Owner } from './record';
import type { ClaimRequest } from './request';
import { putBackClaims } from './statements/putBackClaims';
import { readClaimsOfExecution } from './statements/readClaims';
import type { OutcomeRequest } from './statements/recordOutcomes';
import { ClaimTable } from './table/claimTable';

/** Everything that can be done to claims. One instance serves all executions of a process that use one credential. */
export class ClaimStore {
	constructor(private readonly table: ClaimTable) {}

	/** See `claimDeliveries`; never throws. */
	async claim(operation: Operation, owner: Owner, requests: readonly ClaimRequest[]): Promise<ClaimAnswer[]> {
		return await claimDeliveries(this.table, operation, owner, requests);
	}

	/** See `settleClaims`; never throws. */
	async settle(outcome: OutcomeKind, caller: Owner, requests: readonly OutcomeRequest[]): Promise<OutcomeAnswer[]> {
		return await settleClaims(this.table, outcome, caller, requests);
	}

	/** See `putBackClaims`. @throws ClaimError */
	async putBack(owner: Owner, claims: ReadonlyArray<Pick<Ownership, 'identity' | 'ownerToken'>>, reason: string): Promise<void> {
		await putBackClaims(this.table, owner, claims, reason);
	}

	/** Claims of an execution whose action may still be going on. @throws ClaimError */
	async openClaimsOf(execution: Pick<Owner, 'instanceId' | 'executionId'>): Promise<ClaimRecord[]> {
		return await readClaimsOfExecution(this.table, execution, true);
	}

	/** Claims that an execution left in processing. @throws ClaimError */
	async claimsInProcessingOf(execution: Pick<Owner, 'instanceId' | 'executionId'>): Promise<ClaimRecord[]> {
		return await readClaimsOfExecution(this.table, execution, false);
	}

	/** Closes the connections; for tests and tools: n8n keeps its stores until the process ends. */
	async close(): Promise<void> {
		await this.table.connection.close();
	}
}

export function openClaimStore(settings: ConnectionSettings, onDrop?: (line: string) => void): ClaimStore {
	return new ClaimStore(new ClaimTable(new Connection(settings, onDrop)));
}

/** Stores of edited credentials stay until as many newer ones are in use; their idle connections close by themselves. */
const MAX_STORES = 20;
const stores = new Map<string, ClaimStore>();

/** The store of these settings in this process: one pool per credential, shared by all executions. */
export function sharedClaimStore(settings: ConnectionSettings, onDrop: (line: string) => void): ClaimStore {
	const key = settingsKey(settings);
	const store = stores.get(key) ?? openClaimStore(settings, onDrop);
	// Re-inserted, so that the first of the map is the one that was not used for longest.
	stores.delete(key);
	stores.set(key, store);
	if (stores.size > MAX_STORES) stores.delete([...stores.keys()][0]);
	return store;
}
