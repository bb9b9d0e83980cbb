import { readFileSync } from 'node:fs';
import path from 'node:path';
import { escapeIdentifier } from 'pg';
import type { Connection, Row, Statement } from '../connection/connection';
import type { ConnectionSettings } from '../connection/settings';
import { ClaimError } from '../errors';
import { columnsOf, inspectTable, type ColumnDefinition, type TableInspection } from './inspection';

/** A schema version. A major step is never automatic; a minor one only adds nullable columns or ones with a default. */
export interface SchemaVersion {
	major: number;
	minor: number;
}

export interface MinorStep {
	to: SchemaVersion;
	/** SQL with `:"schema".:"table"` where the table's name goes. */
	sql: string;
}

/** What this version of the package needs the table to be. */
export interface TableDefinition {
	version: SchemaVersion;
	createSql: string;
	/** From 1.0 upwards, in order. */
	minorSteps: readonly MinorStep[];
}

const COMMENT = 'n8n-nodes-idempotent-claim, schema';

export const CLAIM_TABLE: TableDefinition = {
	version: { major: 1, minor: 0 },
	createSql: readFileSync(path.join(__dirname, 'claim-table.sql'), 'utf8'),
	minorSteps: [],
};

/** The table's columns, read from the one place that defines them. */
export const CLAIM_COLUMNS: readonly ColumnDefinition[] = columnsOf(CLAIM_TABLE.createSql);

/** The claim table behind a connection: its quoted name, its creation and upgrade, and statements sent to it. */
export class ClaimTable {
	/** Schema and table, quoted, for use in SQL. */
	readonly name: string;
	private ready: Promise<void> | undefined;

	constructor(
		readonly connection: Connection,
		private readonly definition: TableDefinition = CLAIM_TABLE,
	) {
		const { schema, table } = connection.settings;
		this.name = `${escapeIdentifier(schema)}.${escapeIdentifier(table)}`;
	}

	/**
	 * Sends a statement about the table; before the first one of this process, sees to it that the table is there.
	 * A table that goes missing later is not made anew: all earlier deliveries would be new without anybody knowing.
	 *
	 * @throws ClaimError as `Connection.send` does, and what is wrong with the table
	 */
	async send(statement: Statement): Promise<Row[]> {
		await this.prepare();
		return await this.connection.send(statement);
	}

	/** Looks at the table once per process; a failure is looked into again at the next call. */
	async prepare(): Promise<void> {
		this.ready ??= this.createOrUpgrade().catch((failure: unknown) => {
			this.ready = undefined;
			throw failure;
		});
		await this.ready;
	}

	private async createOrUpgrade(): Promise<void> {
		const inspect = async (send: (text: string, values: unknown[]) => Promise<Row[]>) => await inspectTable(send, this.connection.settings, CLAIM_COLUMNS);
		const present = await inspect(async (text, values) => await this.connection.send({ text, values, writes: false }));
		if (!this.mustChange(present)) return refuseUnfit(present);
		await this.connection.transaction(async (send) => {
			// One process at a time, in one transaction: works through a pooler, and when twenty processes start at once.
			await send(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, [`${COMMENT} ${this.name}`]);
			const now = await inspect(send);
			if (!this.mustChange(now)) return refuseUnfit(now);
			if (now === undefined) {
				await send(this.withName(this.definition.createSql));
			}
			const from = (now && versionOf(now)) ?? { major: 1, minor: 0 };
			for (const step of this.definition.minorSteps) {
				if (isOlder(from, step.to)) await send(this.withName(step.sql));
			}
			const { major, minor } = this.definition.version;
			await send(`COMMENT ON TABLE ${this.name} IS '${COMMENT} ${major}.${minor}'`);
			refuseUnfit(await inspect(send));
		});
	}

	/** @throws ClaimError as `versionTrouble` says, and when the table is missing and is to be made by the DBA */
	private mustChange(present: TableInspection | undefined): boolean {
		const { schema, table, createTable } = this.connection.settings;
		if (present === undefined) {
			if (createTable) return true;
			throw new ClaimError('store_misconfigured', `The table "${schema}"."${table}" does not exist`, {
				hint: 'Create Table is off in the credential: ask the DBA to run the SQL that the package ships (claim-table.sql).',
			});
		}
		const trouble = versionTrouble(present, this.connection.settings, this.definition);
		if (trouble) throw trouble;
		// Left to the DBA: what is missing will be named.
		return createTable && isBehind(present, this.definition);
	}

	private withName(sql: string): string {
		return sql.replaceAll(':"schema".:"table"', () => this.name);
	}
}

function isOlder(a: SchemaVersion, b: SchemaVersion): boolean {
	return a.major < b.major || (a.major === b.major && a.minor < b.minor);
}

/** What the table's own mark says; undefined for a table without one, made by hand or with another comment. */
function versionOf({ comment }: TableInspection): SchemaVersion | undefined {
	const mark = new RegExp(`^${COMMENT} (\\d+)\\.(\\d+)$`).exec(comment ?? '');
	return mark === null ? undefined : { major: Number(mark[1]), minor: Number(mark[2]) };
}

/** Whether the table lacks minor steps. One without a mark is used as it is, if it fits. */
export function isBehind(present: TableInspection, definition: TableDefinition): boolean {
	const version = versionOf(present);
	return version !== undefined && isOlder(version, definition.version);
}

/** A table of another major version, or one that this user should upgrade and may not. */
export function versionTrouble(present: TableInspection, settings: ConnectionSettings, definition: TableDefinition): ClaimError | undefined {
	const version = versionOf(present);
	if (version === undefined) return undefined;
	const name = `"${settings.schema}"."${settings.table}"`;
	const needed = definition.version;
	if (version.major !== needed.major) {
		return new ClaimError('store_misconfigured', `The table ${name} has schema version ${version.major}.${version.minor}, this package needs ${needed.major}.x`, {
			hint: 'Update n8n-nodes-idempotent-claim on every n8n process, or choose another table name.',
		});
	}
	if (settings.createTable && isBehind(present, definition) && !present.mayAlter) {
		return new ClaimError('store_denied', `The table ${name} has schema version ${version.major}.${version.minor}, this package needs ${needed.major}.${needed.minor}, and only its owner "${present.owner}" may upgrade it`, {
			hint: `Make one claim with a credential of "${present.owner}", or grant that role to "${settings.user}".`,
		});
	}
	return undefined;
}

function refuseUnfit(present: TableInspection | undefined): void {
	const [problem] = present?.unfit ?? [];
	if (problem) throw new ClaimError('store_misconfigured', problem.message, { hint: problem.hint });
}
