import { randomUUID } from 'node:crypto';
import { POLL_OFTEN } from '../../../sandbox/setup';
import { sandboxAddress } from './address';

export interface PlannedNode {
	name: string;
	type: string;
	typeVersion: number;
	parameters: Record<string, unknown>;
	/** Anything else that n8n stores of a node: `onError`, `webhookId`, … */
	extra?: Record<string, unknown>;
}

export interface WorkflowPlan {
	name: string;
	nodes: PlannedNode[];
	/** `'If > Complete Claim'`; from another output than the first: `'If:1 > …'`; to another input: `'… > Merge@1'`. */
	wires: string[];
	settings?: Record<string, unknown>;
	pinData?: Record<string, unknown>;
}

type Connections = Record<string, { main: Array<Array<{ node: string; type: 'main'; index: number }>> }>;

/** A workflow as n8n's REST interface takes it. */
export function buildWorkflow({ name, nodes, wires, settings, pinData }: WorkflowPlan): Record<string, unknown> {
	return {
		name,
		nodes: nodes.map(({ extra, ...node }, place) => ({ id: randomUUID(), position: [place * 220, 0], ...node, ...extra })),
		connections: connect(wires),
		settings: { executionOrder: 'v1', ...settings },
		...(pinData && { pinData }),
	};
}

function connect(wires: string[]): Connections {
	const connections: Connections = {};
	for (const wire of wires) {
		const [from, to] = wire.split(' > ');
		const [source, output = '0'] = from.split(':');
		const [target, input = '0'] = to.split('@');
		const outputs = (connections[source] ??= { main: [] }).main;
		while (outputs.length <= Number(output)) outputs.push([]);
		outputs[Number(output)].push({ node: target, type: 'main', index: Number(input) });
	}
	return connections;
}

/** `node('If', 2.3, {…})`: one of n8n's own nodes, named as its type unless `name` says otherwise. */
export function node(type: string, typeVersion: number, parameters: Record<string, unknown>, name = type): PlannedNode {
	return { name, type: `n8n-nodes-base.${type}`, typeVersion, parameters };
}

export function webhook(path: string, responseMode: 'onReceived' | 'lastNode' = 'onReceived'): PlannedNode {
	const parameters = { httpMethod: 'POST', path, responseMode, options: {} };
	return { ...node('webhook', 2.1, parameters, 'Webhook'), extra: { webhookId: randomUUID() } };
}

/** Edit Fields that keeps nothing but these fields. */
export function onlyFields(fields: Record<string, string>, name = 'Edit Fields'): PlannedNode {
	const assignments = Object.entries(fields).map(([field, value]) => ({ id: randomUUID(), name: field, value, type: 'string' }));
	return node('set', 3.4, { mode: 'manual', includeOtherFields: false, assignments: { assignments }, options: {} }, name);
}

export function idempotentClaim(parameters: Record<string, unknown>, name = 'Idempotent Claim'): PlannedNode {
	const usual = { operation: 'claim', provider: 'custom', deliveryId: '={{ $json.id }}', action: 'e2e', retentionDays: 30, options: {} };
	return ours('idempotentClaim', { ...usual, ...parameters }, name);
}

export function completeClaim(parameters: Record<string, unknown>, name = 'Complete Claim'): PlannedNode {
	return ours('completeClaim', { claimFrom: 'upstream', outcome: 'completed', options: {}, ...parameters }, name);
}

export function claimRecoveryTrigger(parameters: Record<string, unknown>, name = 'Claim Recovery Trigger'): PlannedNode {
	return ours('claimRecoveryTrigger', { pollTimes: POLL_OFTEN, provider: 'custom', action: 'e2e', options: {}, ...parameters }, name);
}

function ours(type: string, parameters: Record<string, unknown>, name: string): PlannedNode {
	const credentials = { claimStoreApi: sandboxAddress().credentials.claimStoreApi };
	return { name, type: `n8n-nodes-idempotent-claim.${type}`, typeVersion: 1, parameters, extra: { credentials } };
}
