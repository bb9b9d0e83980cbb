import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { ICredentialDataDecryptedObject, ICredentialTestFunctions, IDataObject } from 'n8n-workflow';
import { Client, escapeIdentifier, type QueryResultRow } from 'pg';
import { testClaimStoreCredential } from '../../../nodes/shared/credentialTest';
import { claimNode, claimsOf, completeNode, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, RECORDED, type Claim, type Workbench } from '../../support/workbench';

/** What the credential test says to the person who presses it. */
export async function pressTest(credential: ICredentialDataDecryptedObject): Promise<{ status: string; message: string }> {
	const { status, message } = await testClaimStoreCredential.call({} as ICredentialTestFunctions, { id: 'store', name: 'store', type: 'claimStoreApi', data: credential });
	return { status, message };
}

/** The shipped SQL with a table's name put in, as psql does. */
export function shippedSql(table: string, schema = 'public'): string {
	return readFileSync(path.join(__dirname, '../../../store/table/claim-table.sql'), 'utf8')
		.replaceAll(':"schema"', () => escapeIdentifier(schema))
		.replaceAll(':"table"', () => escapeIdentifier(table));
}

export const asIs = (sql: string): string => sql;

let tablesNamed = 0;

/** One claim table of a database that somebody else looks after, and the nodes that use it through a credential of its own. */
export class Site {
	private constructor(
		private readonly workbench: Workbench,
		readonly credential: ICredentialDataDecryptedObject,
		readonly schema: string,
		readonly table: string,
	) {}

	/** A table that no process has used yet. */
	static at(workbench: Workbench, changes: IDataObject = {}): Site {
		const { schema = 'public', table = `claims_${++tablesNamed}` } = changes as { schema?: string; table?: string };
		return new Site(workbench, workbench.credential({ ...changes, schema, table }), schema, table);
	}

	/** A table by the shipped SQL as somebody edited it, and changed afterwards: `$TABLE` in the changes is its name. */
	static async made(workbench: Workbench, changes: string[] = [], edit: (sql: string) => string = asIs): Promise<Site> {
		const site = Site.at(workbench);
		const shipped = shippedSql(site.table);
		const sql = edit(shipped);
		if (edit !== asIs && sql === shipped) throw new Error('This edit does not find its place in the shipped SQL');
		for (const statement of [sql, ...changes]) await site.query(statement);
		return site;
	}

	/** The same table by another login. */
	as(user: string, password: string): Site {
		return new Site(this.workbench, { ...this.credential, user, password }, this.schema, this.table);
	}

	get name(): string {
		return `${escapeIdentifier(this.schema)}.${escapeIdentifier(this.table)}`;
	}

	/** As the owner of the server; `$TABLE` is the table's name. */
	async query<Row extends QueryResultRow = QueryResultRow>(sql: string): Promise<Row[]> {
		return await this.workbench.database.query<Row>(sql.replaceAll('$TABLE', () => this.name));
	}

	async count(): Promise<number> {
		const [{ count }] = await this.query<{ count: number }>('SELECT count(*)::int AS count FROM $TABLE');
		return count;
	}

	/** A row past the package, as an import or a hand makes it. */
	async insert(deliveryId: string): Promise<void> {
		await this.query(`
			INSERT INTO $TABLE (delivery_id, source, account, action, environment, state, version, attempt, claim_reason, operation, first_seen_at, updated_at,
				owner_token, owner_instance_id, owner_workflow_id, owner_execution_id, owner_node_id, owner_node_name,
				lease_seconds, when_lease_expires, max_attempts, retention_days, payload_complete, history)
			VALUES ('${deliveryId}', 'shop', '', 'lead', 'live', 'completed', 1, 1, 'first_delivery', 'claim', now(), now(), 'token', 'i', 'w', 'e', 'n', 'N', 300, 'takeOver', 5, 30, false, '[]')`);
	}

	/** What is left of a CREATE UNIQUE INDEX CONCURRENTLY that was broken off at its end: not valid, and kept up. */
	async breakOff(createIndexConcurrently: string): Promise<void> {
		const reader = await this.workbench.transaction();
		await reader.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ');
		await reader.query('SELECT 1');
		// Waits for every transaction that may still look at the table as it was.
		const making = this.query(createIndexConcurrently).then(
			() => 'made',
			(failure: { code: string }) => failure.code,
		);
		const other = new Client({ ...this.workbench.database });
		await other.connect();
		const cancel = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE 'CREATE UNIQUE INDEX CONCURRENTLY%' AND wait_event = 'virtualxid'`;
		while ((await other.query(cancel)).rowCount === 0);
		expect(await making).toBe('57014');
		await reader.rollBack();
		await other.end();
	}

	async test(): Promise<{ status: string; message: string }> {
		return await pressTest(this.credential);
	}

	/**
	 * One execution: Start → Idempotent Claim → Complete Claim. Says of each item, in input order, how it left:
	 * `new first_delivery, recorded`, `duplicate completed`, `error store_denied`.
	 */
	async deliver(ids: string[], parameters: IDataObject = {}): Promise<Delivered> {
		const workflow = guarded(claimNode(parameters), ['Claim -> Complete', 'Claim[1] -> Duplicate', 'Claim[2] -> Alarm', 'Complete -> Action', 'Complete[2] -> Alarm']);
		workflow.nodes.Complete = completeNode({ outcomeReference: 'lead-1' });
		const run = await this.workbench.run(workflow, { items: deliveries(...ids), credentials: { store: this.credential } });
		if (run.error) throw run.error;

		const claims: Array<Claim | undefined> = [];
		const outcomes = new Map<string | null, string>();
		for (const output of [RECORDED, OPERATIONAL_ERROR]) {
			for (const { deliveryId, error } of claimsOf(run, 'Complete', output)) outcomes.set(deliveryId, error ? `error ${error.kind}` : 'recorded');
		}
		for (const output of [NEW_CLAIM, KNOWN_DUPLICATE, OPERATIONAL_ERROR]) {
			for (const { json, pairedItem } of run.itemsOf('Claim', output)) claims[(pairedItem as { item: number }).item] = json.claim as unknown as Claim;
		}
		const said = claims.map((claim) => {
			if (!claim) return 'nothing';
			if (claim.error) return `error ${claim.error.kind}`;
			return claim.status === 'new' ? `new ${claim.reason}, ${outcomes.get(claim.deliveryId) ?? 'not completed'}` : `${claim.status} ${claim.reason}`;
		});
		const outcomeErrors = claimsOf(run, 'Complete', OPERATIONAL_ERROR).flatMap(({ error }) => error ?? []);
		return { said, errors: claims.flatMap((claim) => claim?.error ?? []), outcomeErrors };
	}

	/** Copies in one execution and in a later one: each delivery is new once, its outcome is kept, and the table holds it. */
	async works(): Promise<void> {
		const [{ there }] = await this.workbench.database.query<{ there: boolean }>('SELECT to_regclass($1) IS NOT NULL AS there', [this.name]);
		const before = there ? await this.count() : 0;
		const [a, b] = [`a-${++deliveriesMade}`, `b-${deliveriesMade}`];
		expect((await this.deliver([a, b, a])).said).toEqual(['new first_delivery, recorded', 'new first_delivery, recorded', 'duplicate in_progress']);
		expect((await this.deliver([a])).said).toEqual(['duplicate completed']);
		expect(await this.count()).toBe(before + 2);
	}

	/** Every item is refused for this reason, nothing is written, and the credential test said so before. */
	async refuses(message: RegExp | string, kind = 'store_misconfigured'): Promise<void> {
		const test = await this.test();
		expect(test.status).toBe('Error');
		const { said, errors } = await this.deliver(['a', 'b', 'a']);
		expect(said).toEqual(Array(3).fill(`error ${kind}`));
		for (const error of errors) {
			expect(error.message).toMatch(message);
			expect(error.hint).toMatch(/\w/);
			expect(test.message).toContain(`${error.message}. ${error.hint}`);
		}
	}
}

let deliveriesMade = 0;

export interface Delivered {
	/** Of each item, how it left. */
	said: string[];
	/** What went wrong with the claims. */
	errors: Array<NonNullable<Claim['error']>>;
	/** What went wrong with their outcomes. */
	outcomeErrors: Array<NonNullable<Claim['error']>>;
}
