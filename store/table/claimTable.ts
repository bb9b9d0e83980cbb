import { readFileSync } from 'node:fs';
import path from 'node:path';
import { escapeIdentifier } from 'pg';
import type { Connection, Row, Statement } from '../connection/connection';
import { ClaimError } from '../errors';

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

/** Names of the table's columns, read from the one place that defines them. */
export const CLAIM_COLUMNS: readonly string[] = [...CLAIM_TABLE.createSql.matchAll(/^\t([a-z_]+) +(?:text|integer|timestamptz|json|jsonb|boolean)\b/gm)].map(([, column]) => column);

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
		const present = await this.readVersion(async (text, values) => await this.connection.send({ text, values, writes: false }));
		if (!this.mustChange(present)) return;
		await this.connection.transaction(async (send) => {
			// One process at a time, in one transaction: works through a pooler, and when twenty processes start at once.
			await send(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, [`${COMMENT} ${this.name}`]);
			const now = await this.readVersion(send);
			if (!this.mustChange(now)) return;
			if (now === 'absent') {
				await send(this.withName(this.definition.createSql));
			}
			const from = typeof now === 'string' ? { major: 1, minor: 0 } : now;
			for (const step of this.definition.minorSteps) {
				if (isOlder(from, step.to)) await send(this.withName(step.sql));
			}
			const { major, minor } = this.definition.version;
			await send(`COMMENT ON TABLE ${this.name} IS '${COMMENT} ${major}.${minor}'`);
		});
	}

	/** @throws ClaimError `store_misconfigured` when the table was made by another major version */
	private mustChange(present: SchemaVersion | 'absent' | 'unmarked'): boolean {
		// A table without our mark was made by hand or lost its comment: the statements themselves will show whether it fits.
		if (present === 'unmarked') return false;
		const { createTable, schema, table } = this.connection.settings;
		const needed = this.definition.version;
		if (present !== 'absent' && present.major !== needed.major) {
			throw new ClaimError('store_misconfigured', `The table "${schema}"."${table}" has schema version ${present.major}.${present.minor}, this package needs ${needed.major}.x`, {
				hint: 'Update n8n-nodes-idempotent-claim on every n8n process, or choose another table name.',
			});
		}
		// Left to the DBA: a statement that needs what is missing will be refused and say so.
		if (!createTable) return false;
		return present === 'absent' || isOlder(present, needed);
	}

	private async readVersion(send: (text: string, values: unknown[]) => Promise<Row[]>): Promise<SchemaVersion | 'absent' | 'unmarked'> {
		const { schema, table } = this.connection.settings;
		const [row] = await send(
			`SELECT obj_description(c.oid, 'pg_class') AS comment
			   FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			  WHERE n.nspname = $1 AND c.relname = $2`,
			[schema, table],
		);
		if (row === undefined) return 'absent';
		const mark = new RegExp(`^${COMMENT} (\\d+)\\.(\\d+)$`).exec(row.comment ?? '');
		return mark === null ? 'unmarked' : { major: Number(mark[1]), minor: Number(mark[2]) };
	}

	private withName(sql: string): string {
		return sql.replaceAll(':"schema".:"table"', () => this.name);
	}
}

function isOlder(a: SchemaVersion, b: SchemaVersion): boolean {
	return a.major < b.major || (a.major === b.major && a.minor < b.minor);
}
