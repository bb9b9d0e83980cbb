import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { EXAMPLES_FOLDER } from '../../sandbox/settings';

/**
 * What every example workflow keeps to, as a file that people import. That n8n knows their nodes, and what the workflows do, is
 * tested in a real n8n.
 */

interface ExampleNode {
	id: string;
	name: string;
	type: string;
	typeVersion: number;
	position: [number, number];
	parameters: Record<string, unknown>;
	webhookId?: string;
	onError?: string;
}

type Wires = Array<Array<{ node: string; type: string; index: number }>>;

interface Workflow {
	name: string;
	nodes: ExampleNode[];
	connections: Record<string, { main: Wires }>;
	settings: Record<string, unknown>;
}

class Example {
	readonly text: string;
	readonly workflow: Workflow;

	constructor(readonly file: string) {
		this.text = readFileSync(path.join(EXAMPLES_FOLDER, file), 'utf8');
		this.workflow = JSON.parse(this.text) as Workflow;
	}

	get notes(): ExampleNode[] {
		return this.workflow.nodes.filter(({ type }) => type === STICKY_NOTE);
	}

	/** What does something: all but the notes. */
	get nodes(): ExampleNode[] {
		return this.workflow.nodes.filter(({ type }) => type !== STICKY_NOTE);
	}

	ofType(...types: string[]): ExampleNode[] {
		return this.nodes.filter(({ type }) => types.includes(type));
	}

	/** The nodes that one output leads to. */
	behind(node: ExampleNode, output: number): ExampleNode[] {
		const names = (this.workflow.connections[node.name]?.main[output] ?? []).map((wire) => wire.node);
		return this.nodes.filter(({ name }) => names.includes(name));
	}

	/** Where a sender waits for its answer, and every node on the ways to it, the answering ones included. */
	get waitedFor(): Set<ExampleNode> {
		const found = new Set(this.ofType(WEBHOOK).filter(({ parameters }) => parameters.responseMode !== 'onReceived'));
		for (const node of found) {
			if (node.type === RESPOND) continue;
			for (const output of outputsOf(node)) this.behind(node, output).forEach((next) => found.add(next));
		}
		return found;
	}

	get wires(): Array<{ from: string; to: string; input: number }> {
		return Object.entries(this.workflow.connections).flatMap(([from, { main }]) => main.flatMap((output) => (output ?? []).map(({ node, index }) => ({ from, to: node, input: index }))));
	}
}

const STICKY_NOTE = 'n8n-nodes-base.stickyNote';
const WEBHOOK = 'n8n-nodes-base.webhook';
const RESPOND = 'n8n-nodes-base.respondToWebhook';
const STOP = 'n8n-nodes-base.stopAndError';
const MERGE = 'n8n-nodes-base.merge';
const IDEMPOTENT_CLAIM = 'n8n-nodes-idempotent-claim.idempotentClaim';
const COMPLETE_CLAIM = 'n8n-nodes-idempotent-claim.completeClaim';
const RECOVERY_TRIGGER = 'n8n-nodes-idempotent-claim.claimRecoveryTrigger';

/** The outputs of a node, by their numbers. */
function outputsOf({ type, parameters, onError }: ExampleNode): number[] {
	const upTo = (count: number) => Array.from({ length: count }, (_, output) => output);
	if ([IDEMPOTENT_CLAIM, COMPLETE_CLAIM].includes(type)) return upTo(3);
	if (type === RECOVERY_TRIGGER || type === 'n8n-nodes-base.if' || onError === 'continueErrorOutput') return upTo(2);
	if (type === 'n8n-nodes-base.switch') {
		const { rules, options } = parameters as { rules: { values: unknown[] }; options: { fallbackOutput?: string } };
		return upTo(rules.values.length + (options.fallbackOutput === 'extra' ? 1 : 0));
	}
	return upTo(1);
}

/** Outputs of a claim node that must lead somewhere. What is left out ends there on purpose, or fails the execution. */
function outputsToWire({ type, parameters }: ExampleNode, aSenderWaits: boolean): string[] {
	switch (type) {
		case IDEMPOTENT_CLAIM:
			return ['0 New Claim', '1 Known Duplicate', ...(aSenderWaits ? ['2 Operational Error'] : [])];
		case COMPLETE_CLAIM:
			// That an outcome is recorded is the end, unless a sender waits or the action is still to come.
			return [...(aSenderWaits || parameters.outcome === 'extendLease' ? ['0 Recorded'] : []), '1 Stale Claim', ...(aSenderWaits ? ['2 Operational Error'] : [])];
		default: {
			const takes = (...kinds: string[]) => kinds.some((kind) => (parameters.recover as string[]).includes(kind));
			return [...(takes('received', 'retryableFailures') ? ['0 Ready to Run'] : []), ...(takes('uncertainOutcomes', 'expiredLeases') ? ['1 Reconcile First'] : [])];
		}
	}
}

interface Box {
	left: number;
	top: number;
	right: number;
	bottom: number;
}

/** In the editor's pixels. */
const NODE = 96;
const PER_HANDLE = 32;
/** Of the name and the subtitle, which stand below a node and may be wider than it. */
const LABEL = { height: 68, width: 192 };

/** What a node takes up: itself, which grows with the number of its inputs or outputs, and its label. */
function boxesOf(node: ExampleNode): Box[] {
	const [left, top] = node.position;
	const inputs = Number(node.parameters.numberInputs ?? 1);
	const bottom = top + NODE + PER_HANDLE * Math.max(0, Math.max(inputs, outputsOf(node).length) - 2);
	const middle = left + NODE / 2;
	return [
		{ left, top, right: left + NODE, bottom },
		{ left: middle - LABEL.width / 2, top: bottom, right: middle + LABEL.width / 2, bottom: bottom + LABEL.height },
	];
}

function boxOfNote({ position: [left, top], parameters }: ExampleNode): Box {
	return { left, top, right: left + Number(parameters.width), bottom: top + Number(parameters.height) };
}

function overlap(one: Box, other: Box): boolean {
	return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

const examples = readdirSync(EXAMPLES_FOLDER).map((file) => new Example(file));
const repeated = (values: unknown[]) => values.filter((value, place) => values.indexOf(value) !== place);

test('there are the eight examples', () => {
	expect(examples.map(({ file }) => file).sort()).toEqual([
		'batch-sender.json',
		'durable-inbox.json',
		'failed-executions.json',
		'github-webhook.json',
		'guarded-webhook.json',
		'housekeeping.json',
		'operator-desk.json',
		'reconcile-before-retry.json',
	]);
});

test('they can all be imported into one n8n: no two have the same name, webhook or ID', () => {
	const webhooks = examples.flatMap((example) => example.ofType(WEBHOOK));
	expect(repeated(examples.map(({ workflow }) => workflow.name))).toEqual([]);
	expect(repeated(webhooks.map(({ parameters }) => parameters.path))).toEqual([]);
	expect(repeated(webhooks.map(({ webhookId }) => webhookId))).toEqual([]);
	expect(repeated(examples.flatMap(({ workflow }) => workflow.nodes.map(({ id }) => id)))).toEqual([]);
});

test('they speak of one sender and one job, but for the one that is about a provider', () => {
	const claiming = examples.filter(({ file }) => file !== 'github-webhook.json').flatMap((example) => example.ofType(IDEMPOTENT_CLAIM, RECOVERY_TRIGGER));
	expect(claiming.length).toBeGreaterThanOrEqual(5);
	for (const { parameters } of claiming) expect(parameters).toMatchObject({ provider: 'custom', source: 'example-crm', action: 'create-lead' });
});

describe.each(examples.map((example): [string, Example] => [example.file, example]))('%s', (_file, example) => {
	const { text, workflow, nodes, notes } = example;

	test('is JSON indented with tabs', () => {
		expect(text).toBe(`${JSON.stringify(workflow, null, '\t')}\n`);
	});

	test('holds nothing of the n8n that it was made in: no credential, no pinned data, no other ID', () => {
		expect(Object.keys(workflow).sort()).toEqual(['connections', 'name', 'nodes', 'settings']);
		expect(workflow.settings).toMatchObject({ executionOrder: 'v1' });
		expect(Object.keys(workflow.settings)).not.toEqual(expect.arrayContaining([expect.stringMatching(/errorWorkflow|callerIds/)]));
		for (const node of workflow.nodes) {
			expect(Object.keys(node)).not.toContain('credentials');
			expect(node.id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
			// How n8n stores what was chosen from a list: another workflow, a channel, a table.
			expect(JSON.stringify(node.parameters)).not.toContain('"__rl"');
		}
	});

	test('names no host but those under example.com', () => {
		const hosts = [...text.matchAll(/\bhttps?:\/\/([^\s/"'`\\)]+)/g)].map(([, host]) => host);
		expect(hosts.filter((host) => !/(^|\.)example\.com$/.test(host))).toEqual([]);
	});

	test('has nodes of different names, and wires between nodes that are there', () => {
		const names = nodes.map(({ name }) => name);
		expect(repeated(workflow.nodes.map(({ name }) => name))).toEqual([]);
		for (const { from, to } of example.wires) expect(names).toEqual(expect.arrayContaining([from, to]));
	});

	test('has claim nodes whose outputs lead somewhere; Operational Error wherever a sender waits', () => {
		const open = example.ofType(IDEMPOTENT_CLAIM, COMPLETE_CLAIM, RECOVERY_TRIGGER).flatMap((node) =>
			outputsToWire(node, example.waitedFor.has(node))
				.filter((output) => example.behind(node, Number(output[0])).length === 0)
				.map((output) => `${node.name}: ${output}`),
		);
		expect(open).toEqual([]);
	});

	test('has claim nodes that let nothing through unasked', () => {
		for (const node of example.ofType(IDEMPOTENT_CLAIM, COMPLETE_CLAIM)) {
			const switches = node as unknown as Record<string, unknown>;
			expect(['disabled', 'alwaysOutputData', 'executeOnce'].filter((name) => switches[name])).toEqual([]);
		}
	});

	test('answers a sender that waits, whichever way its request goes', () => {
		const silent = [...example.waitedFor]
			.filter(({ type }) => type !== RESPOND && type !== STOP)
			.flatMap((node) => outputsOf(node).filter((output) => example.behind(node, output).length === 0).map((output) => `${node.name}: ${output}`));
		expect(silent).toEqual([]);
	});

	test('has one wire to each input of a Merge: with two, n8n would run it twice', () => {
		for (const { name, parameters } of example.ofType(MERGE)) {
			const inputs = example.wires.filter(({ to }) => to === name).map(({ input }) => input);
			expect(inputs.sort((one, other) => one - other)).toEqual(Array.from({ length: Number(parameters.numberInputs) }, (_, input) => input));
		}
	});

	test('explains itself in notes, which cover no node and no other note', () => {
		expect(notes.length).toBeGreaterThan(0);
		const covered = notes.flatMap((note, place) => {
			const hidden = [...nodes.filter((node) => boxesOf(node).some((box) => overlap(box, boxOfNote(note)))), ...notes.slice(place + 1).filter((other) => overlap(boxOfNote(other), boxOfNote(note)))];
			return hidden.map(({ name }) => `${note.name} / ${name}`);
		});
		expect(covered).toEqual([]);
	});

	test('has nodes that do not stand on each other', () => {
		const covered = nodes.flatMap((node, place) => nodes.slice(place + 1).filter((other) => boxesOf(node).some((box) => boxesOf(other).some((otherBox) => overlap(box, otherBox)))).map(({ name }) => `${node.name} / ${name}`));
		expect(covered).toEqual([]);
	});
});
