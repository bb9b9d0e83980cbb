import type { ICredentialDataDecryptedObject, IDataObject, INodeExecutionData, INodeType } from 'n8n-workflow';
import { Client } from 'pg';
import { ClaimStoreApi } from '../../credentials/ClaimStoreApi.credentials';
import { ClaimRecoveryTrigger } from '../../nodes/ClaimRecoveryTrigger/ClaimRecoveryTrigger.node';
import { CompleteClaim } from '../../nodes/CompleteClaim/CompleteClaim.node';
import { IdempotentClaim } from '../../nodes/IdempotentClaim/IdempotentClaim.node';
import { createTestDatabase, type ServerAddress, type TestDatabase } from './database';
import { Engine, type FinishedRun, type RunOptions, type TestNode, type TestWorkflow } from './engine';
import { testNodeTypes } from './nodeTypes';
import { publish, withPollTimes, type Publication, type PublishOptions } from './publication';

export const IDEMPOTENT_CLAIM = 'n8n-nodes-idempotent-claim.idempotentClaim';
export const COMPLETE_CLAIM = 'n8n-nodes-idempotent-claim.completeClaim';
export const CLAIM_RECOVERY_TRIGGER = 'n8n-nodes-idempotent-claim.claimRecoveryTrigger';

/** Outputs of the nodes under test, by the names on the canvas. */
export const NEW_CLAIM = 0;
export const KNOWN_DUPLICATE = 1;
export const RECORDED = 0;
export const STALE_CLAIM = 1;
export const OPERATIONAL_ERROR = 2;

/** The `claim` field of an item, as far as tests ask for it. */
export interface Claim {
	status: string;
	reason: string | null;
	responseCode: number;
	handle: string | null;
	idempotencyKey: string | null;
	environment: string | null;
	source: string | null;
	account: string | null;
	deliveryId: string | null;
	action: string | null;
	eventType: string | null;
	state: string | null;
	version: number | null;
	attempt: number | null;
	leaseExpiresAt: string | null;
	retryAt: string | null;
	firstSeenAt: string | null;
	payloadChanged: boolean | null;
	payloadComplete: boolean | null;
	outcome: { reference: string | null; result: unknown; reason: string | null; recordedAt: string } | null;
	owner: { workflowId: string; executionId: string; nodeName: string } | null;
	error: { kind: string; message: string; hint: string | null; retryable: boolean; sqlState: string | null } | null;
}

/** A row of the claim table, column by column. */
export type ClaimRow = Record<string, unknown>;

/** The nodes on n8n's engine, and the database under them: what a user sees and what is really stored. */
export class Workbench {
	private constructor(
		readonly database: TestDatabase,
		private readonly engine: Engine,
	) {}

	/** One database for a test file; `extraTypes` are node types of that file's own, `server` one that it takes down. */
	static async open(extraTypes: Record<string, INodeType> = {}, server?: ServerAddress): Promise<Workbench> {
		return Workbench.on(await createTestDatabase(server), extraTypes);
	}

	/** Another one on the same database, with other node types. */
	withNodes(extraTypes: Record<string, INodeType> = {}): Workbench {
		return Workbench.on(this.database, extraTypes);
	}

	private static on(database: TestDatabase, extraTypes: Record<string, INodeType>): Workbench {
		const types = { ...testNodeTypes, [IDEMPOTENT_CLAIM]: new IdempotentClaim(), [COMPLETE_CLAIM]: new CompleteClaim(), [CLAIM_RECOVERY_TRIGGER]: withPollTimes(new ClaimRecoveryTrigger()), ...extraTypes };
		return new Workbench(database, new Engine(types, [new ClaimStoreApi()]));
	}

	/** Runs a workflow; its nodes' credential `store` leads to this workbench's database. */
	async run(workflow: TestWorkflow, options: RunOptions = {}): Promise<FinishedRun> {
		return await this.engine.run(workflow, this.withCredential(options));
	}

	/** Publishes a workflow that begins with a polling trigger. */
	async publish(workflow: TestWorkflow, options: PublishOptions = {}): Promise<Publication> {
		return await publish(this.engine, workflow, { ...options, ...this.withCredential(options) });
	}

	async resume(workflow: TestWorkflow, from: FinishedRun, options: RunOptions): Promise<FinishedRun> {
		return await this.engine.resume(workflow, from.data, this.withCredential(options));
	}

	/** The credential's data, with changes: `workbench.credential({ password: 'wrong' })`. */
	credential(changes: IDataObject = {}): ICredentialDataDecryptedObject {
		const { host, port, database, user, password } = this.database;
		// Short, so that the tests of an unreachable store do not take longer than all others together.
		return { host, port, database, user, password, timeoutMs: 2000, ...changes };
	}

	/** All claims of one source, or of every source, in the order of their delivery IDs. */
	async rows(source?: string): Promise<ClaimRow[]> {
		const [{ exists }] = await this.database.query(`SELECT to_regclass('idempotent_claims') IS NOT NULL AS exists`);
		if (!exists) return [];
		return await this.database.query('SELECT * FROM idempotent_claims WHERE $1::text IS NULL OR source = $1 ORDER BY delivery_id, environment, action', [source ?? null]);
	}

	/** The only claim of a delivery. */
	async row(deliveryId: string): Promise<ClaimRow> {
		const rows = await this.database.query('SELECT * FROM idempotent_claims WHERE delivery_id = $1', [deliveryId]);
		if (rows.length !== 1) throw new Error(`${rows.length} claims of ${deliveryId} instead of one`);
		return rows[0];
	}

	/** Moves a claim in time or state, so that no test has to wait: `change('d1', LEASE_OVER)`. */
	async change(deliveryId: string, assignments: string): Promise<void> {
		await this.database.query(`UPDATE idempotent_claims SET ${assignments} WHERE delivery_id = $1`, [deliveryId]);
	}

	/** Forgets all claims; the table stays. */
	async clear(): Promise<void> {
		if ((await this.rows()).length > 0) await this.database.query('DELETE FROM idempotent_claims');
	}

	/** Another session in the middle of its transaction. */
	async transaction(): Promise<{ query(sql: string): Promise<unknown>; rollBack(): Promise<void> }> {
		const { host, port, database, user, password } = this.database;
		const client = new Client({ host, port, database, user, password });
		await client.connect();
		await client.query('BEGIN');
		return {
			query: async (sql) => await client.query(sql),
			async rollBack() {
				await client.query('ROLLBACK');
				await client.end();
			},
		};
	}

	async close(): Promise<void> {
		await this.database.drop();
	}

	private withCredential(options: RunOptions): RunOptions {
		return { ...options, credentials: { store: this.credential(), ...options.credentials } };
	}
}

/** An Idempotent Claim that takes the delivery ID from the item's `id`; settings are those of the node's Settings tab. */
export function claimNode(parameters: IDataObject = {}, settings: Partial<TestNode> = {}): TestNode {
	return { type: IDEMPOTENT_CLAIM, credential: 'store', parameters: { source: 'shop', deliveryId: '={{ $json.id }}', action: 'lead', ...parameters }, ...settings };
}

export function completeNode(parameters: IDataObject = {}, settings: Partial<TestNode> = {}): TestNode {
	return { type: COMPLETE_CLAIM, credential: 'store', parameters, ...settings };
}

export const ALL_OUTPUTS = ['Claim -> Action', 'Claim[1] -> Duplicate', 'Claim[2] -> Alarm'];

/** Start → Claim → Action | Duplicate | Alarm; `lines` replaces what is wired behind Claim. */
export function guarded(claim: TestNode = claimNode(), lines: string[] = ALL_OUTPUTS): TestWorkflow {
	return {
		nodes: {
			Start: { type: 'n8n-nodes-base.webhook' },
			Claim: claim,
			Action: { type: 'n8n-nodes-base.noOp' },
			Duplicate: { type: 'n8n-nodes-base.noOp' },
			Alarm: { type: 'n8n-nodes-base.noOp' },
		},
		lines: ['Start -> Claim', ...lines],
	};
}

/** Items with these delivery IDs. */
export function deliveries(...ids: unknown[]): INodeExecutionData[] {
	return ids.map((id) => ({ json: { id } as IDataObject }));
}

/** The claim fields of what left by an output, over all runs of the node. */
export function claimsOf(run: FinishedRun, node: string, output: number, field = 'claim'): Claim[] {
	return run.allOutputOf(node, output).map((json) => json[field] as unknown as Claim);
}
