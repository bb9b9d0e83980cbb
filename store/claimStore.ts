import { claimDeliveries, type ClaimAnswer } from './claim';
import { Connection } from './connection/connection';
import { settingsKey, type ConnectionSettings } from './connection/settings';
import type { OpenLine } from './connection/tunnel';
import type { OutcomeKind } from './decisions';
import { Gathering } from './gathering';
import type { Ownership } from './handle';
import type { Identity } from './identity';
import { settleClaims, type OutcomeAnswer } from './outcome';
import type { ClaimRecord, Operation, Owner } from './record';
import type { ClaimCall, ClaimRequest } from './request';
import { decide, type Decision, type ResolveAnswer } from './resolve';
import { testStore, type SelfTest } from './selfTest';
import { findClaimDetails, findClaims, type ClaimDetails, type ClaimFilter } from './statements/findClaims';
import { countPurgeable, purgeClaims, type PurgeCount, type PurgeRequest } from './statements/purgeClaims';
import { putBackClaims } from './statements/putBackClaims';
import { readClaimsOfExecution } from './statements/readClaims';
import type { OutcomeCall, OutcomeRequest } from './statements/recordOutcomes';
import { summarizeClaims, type ClaimCount } from './statements/summarizeClaims';
import { takeDueClaims, type RecoveredClaim, type RecoveryRequest } from './statements/takeDueClaims';
import { ClaimTable } from './table/claimTable';

/** Everything that can be done to claims. One instance serves all executions of a process that use one credential. */
export class ClaimStore {
	private readonly claims: Gathering<ClaimCall, ClaimAnswer>;
	private readonly outcomes = new Map<OutcomeKind, Gathering<OutcomeCall, OutcomeAnswer>>();

	constructor(private readonly table: ClaimTable) {
		this.claims = new Gathering(async (calls, answers) => await claimDeliveries(table, calls, answers));
	}

	/** See `claimDeliveries`; never throws. */
	async claim(operation: Operation, owner: Owner, requests: readonly ClaimRequest[]): Promise<ClaimAnswer[]> {
		return await this.claims.answer(requests.map((request) => ({ operation, owner, request })));
	}

	/** See `settleClaims`; never throws. */
	async settle(outcome: OutcomeKind, caller: Owner, requests: readonly OutcomeRequest[]): Promise<OutcomeAnswer[]> {
		const gathering = this.outcomes.get(outcome) ?? new Gathering(async (calls, answers) => await settleClaims(this.table, outcome, calls, answers));
		this.outcomes.set(outcome, gathering);
		// Where nothing was to be done, nothing was created.
		const asked = outcome === 'noActionNeeded' ? requests.map((request) => ({ ...request, reference: null })) : requests;
		return await gathering.answer(asked.map((request) => ({ caller, request })));
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

	/** See `takeDueClaims`. @throws ClaimError */
	async takeDue(owner: Owner, request: RecoveryRequest): Promise<RecoveredClaim[]> {
		return await takeDueClaims(this.table, owner, request);
	}

	/** See `findClaims`. @throws ClaimError */
	async find(filter: ClaimFilter, limit: number, withPayload = true): Promise<ClaimDetails[]> {
		return await findClaims(this.table, filter, limit, withPayload);
	}

	/** See `findClaimDetails`. @throws ClaimError */
	async details(identity: Identity): Promise<ClaimDetails | undefined> {
		return await findClaimDetails(this.table, identity);
	}

	/** See `decide`. @throws ClaimError */
	async resolve(decision: Decision): Promise<ResolveAnswer> {
		return await decide(this.table, decision);
	}

	/** See `summarizeClaims`. @throws ClaimError */
	async summarize(): Promise<ClaimCount[]> {
		return await summarizeClaims(this.table);
	}

	/** See `purgeClaims` and `countPurgeable`. @throws ClaimError */
	async purge(request: PurgeRequest, dryRun: boolean): Promise<PurgeCount> {
		return await (dryRun ? countPurgeable : purgeClaims)(this.table, request);
	}

	/** See `testStore`; never throws. */
	async test(owner: Owner): Promise<SelfTest> {
		return await testStore(this.table, owner);
	}

	/** Closes the connections; for tests and tools: n8n keeps its stores until the process ends. */
	async close(): Promise<void> {
		await this.table.connection.close();
	}
}

/** @param openLine the way through the tunnel that the settings ask for */
export function openClaimStore(settings: ConnectionSettings, onDrop?: (line: string) => void, openLine?: OpenLine): ClaimStore {
	return new ClaimStore(new ClaimTable(new Connection(settings, onDrop, openLine)));
}

/** Stores of edited credentials stay until as many newer ones are in use; their idle connections close by themselves. */
const MAX_STORES = 20;
const stores = new Map<string, ClaimStore>();

/** The store of these settings in this process: one pool per credential, shared by all executions. What it is given it keeps. */
export function sharedClaimStore(settings: ConnectionSettings, onDrop: (line: string) => void, openLine?: OpenLine): ClaimStore {
	const key = settingsKey(settings);
	const store = stores.get(key) ?? openClaimStore(settings, onDrop, openLine);
	// Re-inserted, so that the first of the map is the one that was not used for longest.
	stores.delete(key);
	stores.set(key, store);
	if (stores.size > MAX_STORES) stores.delete([...stores.keys()][0]);
	return store;
}
