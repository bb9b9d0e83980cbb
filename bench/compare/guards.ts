import type { Named } from '../../sandbox/setup';
import { buildWorkflow, node, type PlannedNode, type WorkflowPlan } from '../../test/e2e/support/workflow';

/** What guards need in n8n, made before them. */
export interface Belongings {
	readonly destinationUrl: string;
	readonly claimStoreApi: Named;
	readonly postgres: Named;
	readonly dataTableId: string;
}

export type GuardName = 'none' | 'removeDuplicates' | 'dataTable' | 'postgres' | 'claim' | 'claimOnly';

/** A way to act once per delivery, as somebody would wire it. */
export interface Guard {
	readonly name: GuardName;
	readonly title: string;
	/** Whether this package has to keep its promise here. */
	readonly ours: boolean;
	readonly workflow: Record<string, unknown>;
	/** Of its webhook. */
	readonly path: string;
}

/** Workflows with the same webhook, the same action and the same kind of answer; between them, another guard in each. */
export function makeGuards(belongings: Belongings): Guard[] {
	return [
		guard('none', 'no guard', [act(belongings), respond()], ['Webhook > Act', 'Act > Respond']),
		guard(
			'removeDuplicates',
			'Remove Duplicates',
			// Its copies are dropped: they reach no Respond to Webhook node, and it has no second output that the editor shows.
			[removeDuplicates(), act(belongings), respond()],
			['Webhook > Remove Duplicates', 'Remove Duplicates > Act', 'Act > Respond'],
		),
		guard(
			'dataTable',
			'Data Table: If Row Does Not Exist, then Insert',
			[rowNotExists(belongings), insertRow(belongings), act(belongings), respond()],
			['Webhook > If Row Does Not Exist', 'If Row Does Not Exist > Insert Row', 'Insert Row > Act', 'Act > Respond'],
		),
		guard(
			'postgres',
			'Postgres node: INSERT … ON CONFLICT DO NOTHING, then If',
			[insertDelivery(belongings), ifInserted(), act(belongings), respond()],
			['Webhook > Insert Delivery', 'Insert Delivery > If', 'If > Act', 'If:1 > Respond', 'Act > Respond'],
		),
		guard(
			'claim',
			'Idempotent Claim and Complete Claim',
			[claim(belongings, 'claim'), act(belongings), complete(belongings), respond('={{ $json.claim.responseCode }}')],
			[
				'Webhook > Idempotent Claim',
				'Idempotent Claim > Act',
				'Act > Complete Claim',
				...[0, 1, 2].map((output) => `Complete Claim:${output} > Respond`),
				...[1, 2].map((output) => `Idempotent Claim:${output} > Respond`),
			],
		),
		guard(
			'claimOnly',
			'Idempotent Claim alone',
			[claim(belongings, 'claim-only'), act(belongings), respond(), respond('={{ $json.claim.responseCode }}', 'Answer Others')],
			['Webhook > Idempotent Claim', 'Idempotent Claim > Act', 'Act > Respond', ...[1, 2].map((output) => `Idempotent Claim:${output} > Answer Others`)],
		),
	];
}

function guard(name: GuardName, title: string, nodes: PlannedNode[], wires: WorkflowPlan['wires']): Guard {
	const path = `compare-${name}`;
	const workflow = buildWorkflow({ name: title, nodes: [webhook(path), ...nodes], wires });
	return { name, title, ours: name === 'claim' || name === 'claimOnly', workflow, path };
}

const DELIVERY_ID = '={{ $json.body.id }}';

function webhook(path: string): PlannedNode {
	return { ...node('webhook', 2.1, { httpMethod: 'POST', path, responseMode: 'responseNode', options: {} }, 'Webhook'), extra: { webhookId: path } };
}

/** By the Webhook's own item: what reaches it from some guards is a row of theirs. */
function act({ destinationUrl }: Belongings): PlannedNode {
	const delivery = "$('Webhook').item.json.body";
	const jsonBody = `={{ JSON.stringify({ deliveryId: ${delivery}.id, email: ${delivery}.lead.email, name: ${delivery}.lead.name }) }}`;
	return node('httpRequest', 4.2, { method: 'POST', url: `${destinationUrl}/leads`, sendBody: true, specifyBody: 'json', jsonBody, options: {} }, 'Act');
}

function respond(responseCode: number | string = 200, name = 'Respond'): PlannedNode {
	return node('respondToWebhook', 1.5, { respondWith: 'noData', options: { responseCode } }, name);
}

function removeDuplicates(): PlannedNode {
	const parameters = { operation: 'removeItemsSeenInPreviousExecutions', logic: 'removeItemsWithAlreadySeenKeyValues', dedupeValue: DELIVERY_ID, options: {} };
	return node('removeDuplicates', 2, parameters, 'Remove Duplicates');
}

function rowNotExists({ dataTableId }: Belongings): PlannedNode {
	const filters = { conditions: [{ keyName: 'deliveryId', keyValue: DELIVERY_ID }] };
	return node('dataTable', 1.1, { resource: 'row', operation: 'rowNotExists', dataTableId: byId(dataTableId), matchType: 'anyCondition', filters }, 'If Row Does Not Exist');
}

function insertRow({ dataTableId }: Belongings): PlannedNode {
	const schema = [{ id: 'deliveryId', displayName: 'deliveryId', required: false, defaultMatch: false, display: true, type: 'string', readOnly: false, removed: false }];
	const columns = { mappingMode: 'defineBelow', value: { deliveryId: DELIVERY_ID }, matchingColumns: [], schema };
	return node('dataTable', 1.1, { resource: 'row', operation: 'insert', dataTableId: byId(dataTableId), columns, options: {} }, 'Insert Row');
}

const byId = (value: string) => ({ __rl: true, mode: 'id', value });

function insertDelivery({ postgres }: Belongings): PlannedNode {
	const query = 'INSERT INTO deliveries (id, token) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id';
	const options = { queryReplacement: '={{ [$json.body.id, $execution.id] }}' };
	return { ...node('postgres', 2.6, { operation: 'executeQuery', query, options }, 'Insert Delivery'), extra: { credentials: { postgres }, alwaysOutputData: true } };
}

/** Whether a row came: where none did, the Postgres node says `success` or nothing. */
function ifInserted(): PlannedNode {
	const condition = { id: 'inserted', leftValue: '={{ $json.id }}', rightValue: '', operator: { type: 'string', operation: 'exists', singleValue: true } };
	return node('if', 2.2, { conditions: { options: { caseSensitive: true, leftValue: '', typeValidation: 'strict', version: 2 }, conditions: [condition], combinator: 'and' }, options: {} }, 'If');
}

function claim(belongings: Belongings, action: string): PlannedNode {
	const parameters = { operation: 'claim', provider: 'custom', source: 'compare', deliveryId: DELIVERY_ID, action, retentionDays: 30, options: {} };
	return ours(belongings, 'idempotentClaim', 'Idempotent Claim', parameters);
}

const complete = (belongings: Belongings) => ours(belongings, 'completeClaim', 'Complete Claim', { claimFrom: 'upstream', outcome: 'completed', options: {} });

function ours({ claimStoreApi }: Belongings, type: string, name: string, parameters: Record<string, unknown>): PlannedNode {
	return { name, type: `n8n-nodes-idempotent-claim.${type}`, typeVersion: 1, parameters, extra: { credentials: { claimStoreApi } } };
}
