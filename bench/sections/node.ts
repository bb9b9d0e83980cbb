import { randomUUID } from 'node:crypto';
import type { INodeExecutionData } from 'n8n-workflow';
import { openClaimStore } from '../../store/claimStore';
import { payloadToStore } from '../../store/payload';
import { settingsFor } from '../../test/store/support/claims';
import { createTestDatabase } from '../../test/support/database';
import type { Engine, RunOptions, TestWorkflow } from '../../test/support/engine';
import { ALL_OUTPUTS, claimNode, completeNode, guarded, KNOWN_DUPLICATE, NEW_CLAIM, RECORDED } from '../../test/support/workbench';
import { CONNECTIONS, makeUsed, type Kind } from '../contestant';
import { openEngine } from '../engine';
import { number, spread, table } from '../markdown';
import { Ours } from '../ours';
import { roundByRound, takeTurns, timeOf, type Job } from '../rounds';
import { atMost, type Goal, type Section } from '../section';

const FULL = { rounds: 15, items: 2000, present: 10_000 };
const QUICK = { rounds: 1, items: 100, present: 200 };

/** What is measured, and the milliseconds for each item that are allowed, where there is a goal. */
const CASES: ReadonlyArray<{ kind: Kind; size: number; most?: number }> = [
	{ kind: 'new', size: 1 },
	{ kind: 'new', size: 100, most: 0.1 },
	{ kind: 'new', size: 1000 },
	{ kind: 'duplicate', size: 100, most: 0.1 },
	{ kind: 'completed', size: 100, most: 0.1 },
];
const TITLES: Readonly<Record<Kind, string>> = { new: 'Idempotent Claim, new', duplicate: 'Idempotent Claim, duplicates', completed: 'Complete Claim' };

/** What the nodes add to the store. */
export const section: Section = {
	name: 'node',
	title: 'What the nodes add to the store',
	async measure(bench) {
		const { rounds, items, present } = bench.quick ? QUICK : FULL;
		const database = await createTestDatabase(bench.server);
		const { host, port, user, password } = database;
		const credentials = { store: { host, port, user, password, database: database.database, maxConnections: CONNECTIONS } };
		const workflows = new Workflows(await openEngine(), credentials);
		const store = openClaimStore(settingsFor(database, { maxConnections: CONNECTIONS }));
		const ours = new Ours(store, () => payloadToStore(anItem().json, false));
		await makeUsed(database, [ours], present);
		const rows: string[][] = [];
		const goals: Goal[] = [];
		for (const { kind, size, most } of CASES.filter((one) => one.size <= items)) {
			bench.tell(`${TITLES[kind]}, ${size} items in one execution`);
			const count = size * Math.ceil(items / size);
			const roundOf = (jobs: () => Promise<Job[]>) => async () => (await timeOf(await jobs(), 1)) / count;
			const took = await takeTurns(rounds, {
				withNode: roundOf(async () => await workflows.jobs(WITH_NODE[kind], kind, count, size)),
				withoutNode: roundOf(async () => await workflows.jobs(WITHOUT_NODE[kind], kind, count, size)),
				store: roundOf(async () => await ours.jobs(kind, count, size)),
			});
			const less = (a: number, b: number) => a - b;
			const added = roundByRound(roundByRound(took.withNode, took.withoutNode, less), took.store, less);
			rows.push([TITLES[kind], number(size), ...[took.withNode, took.withoutNode, took.store, added].map((values) => spread(values))]);
			if (most !== undefined) goals.push(atMost(`${TITLES[kind]}, ${number(size)} items in one execution: what the node adds to each`, most, added, 'ms'));
		}
		await store.close();
		await database.drop();
		return {
			blocks: [
				`Milliseconds for each item, in n8n's engine (n8n-core): the median over the rounds (${rounds}), and in brackets the fastest and the slowest. ` +
					"What the node adds is the workflow with it, less the workflow with No Operation in its place, less the store's work on as many items. The node has its default settings, so the JSON of each item is stored.",
				table(['', 'items', 'with the node', 'without it', 'the store alone', 'the node adds'], rows),
			],
			goals,
		};
	},
};

/** A workflow, and by which output of which node all items must leave. */
interface Way {
	workflow: TestWorkflow;
	last: string;
	output: number;
}

// As a user gets it, but for source and delivery ID, which have no default.
const claimed = guarded(claimNode({ action: '={{ $workflow.id }}' }));
const completed: TestWorkflow = { nodes: { ...claimed.nodes, Complete: completeNode() }, lines: ['Start -> Claim', 'Claim -> Complete', ...ALL_OUTPUTS.slice(1)] };

function withoutNode(workflow: TestWorkflow, node: string): Way {
	return { workflow: { ...workflow, nodes: { ...workflow.nodes, [node]: { type: 'n8n-nodes-base.noOp' } } }, last: node, output: 0 };
}

const WITH_NODE: Readonly<Record<Kind, Way>> = {
	new: { workflow: claimed, last: 'Claim', output: NEW_CLAIM },
	duplicate: { workflow: claimed, last: 'Claim', output: KNOWN_DUPLICATE },
	completed: { workflow: completed, last: 'Complete', output: RECORDED },
};
const WITHOUT_NODE: Readonly<Record<Kind, Way>> = {
	new: withoutNode(claimed, 'Claim'),
	duplicate: withoutNode(claimed, 'Claim'),
	completed: withoutNode(completed, 'Complete'),
};

function anItem(): INodeExecutionData {
	return { json: { id: randomUUID(), type: 'lead.created', createdAt: new Date().toISOString(), lead: { email: 'lead@example.com', name: 'Example Lead', company: 'Example Company', consent: true } } };
}

/** Executions of workflows, as jobs. */
class Workflows {
	/** Deliveries that are completed, to which copies can come. */
	private known: INodeExecutionData[] = [];

	constructor(
		private readonly engine: Engine,
		private readonly credentials: RunOptions['credentials'],
	) {}

	/** Each job is one execution with so many items. */
	async jobs({ workflow, last, output }: Way, kind: Kind, count: number, perExecution: number): Promise<Job[]> {
		const items = kind === 'duplicate' ? await this.knownItems(count) : Array.from({ length: count }, anItem);
		return Array.from({ length: count / perExecution }, (_, job) => async () => {
			const run = await this.engine.run(workflow, { items: items.slice(job * perExecution, (job + 1) * perExecution), credentials: this.credentials });
			const left = run.itemsOf(last, output).length;
			if (left !== perExecution) throw new Error(`${left} of ${perExecution} items left ${last} by the output that they should`);
		});
	}

	private async knownItems(count: number): Promise<INodeExecutionData[]> {
		if (this.known.length < count) {
			this.known = Array.from({ length: count }, anItem);
			const run = await this.engine.run(completed, { items: this.known, credentials: this.credentials });
			if (run.itemsOf('Complete', RECORDED).length !== count) throw new Error('Deliveries could not be completed');
		}
		return this.known.slice(0, count);
	}
}
