import { POLL_OFTEN } from '../../sandbox/setup';
import { buildWorkflow, node, type PlannedNode, type WorkflowPlan } from '../e2e/support/workflow';
import type { Site } from './site';

/** Saves the workflow and activates it. */
export async function publish({ rest }: Site, plan: WorkflowPlan): Promise<void> {
	// The first versions of n8n 2 want to be told that it is not active.
	const { id, versionId } = await rest.post<{ id: string; versionId: string }>('/rest/workflows', { ...buildWorkflow(plan), active: false });
	try {
		await rest.post(`/rest/workflows/${id}/activate`, { versionId });
	} catch (error) {
		if (!(error as Error).message.includes('n8n answered 404')) throw error;
		// n8n 1 has no such address: there a workflow is active because it says so.
		await rest.patch(`/rest/workflows/${id}`, { active: true, versionId });
	}
}

/** Claim, act, record, answer. */
export function guarded(site: Site): WorkflowPlan {
	return {
		name: 'Guarded',
		nodes: [webhook('guarded', 'responseNode'), claim(site, 'claim'), createLead(site), complete(site), answer()],
		wires: [
			'Webhook > Idempotent Claim',
			'Idempotent Claim > Create Lead',
			'Create Lead > Complete Claim',
			...[0, 1, 2].map((output) => `Complete Claim:${output} > Answer`),
			...[1, 2].map((output) => `Idempotent Claim:${output} > Answer`),
		],
	};
}

/** Store and answer; later act and record. */
export function inbox(site: Site): WorkflowPlan {
	const trigger = ours(site, 'claimRecoveryTrigger', 'Claim Recovery Trigger', { ...DELIVERIES, pollTimes: POLL_OFTEN, recover: ['received'], action: 'inbox', limit: 10, leaseSeconds: 300 });
	return {
		name: 'Inbox',
		nodes: [webhook('inbox', 'responseNode'), claim(site, 'receive'), answer(), trigger, createLead(site), complete(site)],
		wires: [
			'Webhook > Idempotent Claim',
			...[0, 1, 2].map((output) => `Idempotent Claim:${output} > Answer`),
			'Claim Recovery Trigger > Create Lead',
			'Create Lead > Complete Claim',
		],
	};
}

/** Answers what Claim Store counts. */
export function summary(site: Site): WorkflowPlan {
	return {
		name: 'Summary',
		nodes: [webhook('summary', 'lastNode'), ours(site, 'claimStore', 'Claim Store', { operation: 'summarize', environment: 'live' })],
		wires: ['Webhook > Claim Store'],
	};
}

const DELIVERIES = { provider: 'custom', source: 'compat', options: {} };

// n8n's own nodes in versions that n8n 1.0 has already.
const webhook = (path: string, responseMode: string): PlannedNode => ({ ...node('webhook', 1, { httpMethod: 'POST', path, responseMode, options: {} }, 'Webhook'), extra: { webhookId: path } });
const answer = () => node('respondToWebhook', 1, { respondWith: 'noData', options: { responseCode: '={{ $json.claim.responseCode }}' } }, 'Answer');

function createLead({ destinationUrl }: Site): PlannedNode {
	const jsonBody = "={{ JSON.stringify({ deliveryId: $json.body.id, email: 'ada@example.com', name: 'Ada' }) }}";
	return node('httpRequest', 4.1, { method: 'POST', url: `${destinationUrl}/leads`, sendBody: true, specifyBody: 'json', jsonBody, options: {} }, 'Create Lead');
}

function claim(site: Site, operation: 'claim' | 'receive'): PlannedNode {
	const action = operation === 'receive' ? 'inbox' : 'guarded';
	return ours(site, 'idempotentClaim', 'Idempotent Claim', { ...DELIVERIES, operation, deliveryId: '={{ $json.body.id }}', action, retentionDays: 30 });
}

const complete = (site: Site) => ours(site, 'completeClaim', 'Complete Claim', { claimFrom: 'upstream', outcome: 'completed', options: {} });

function ours({ credential: { id, name } }: Site, type: string, title: string, parameters: Record<string, unknown>): PlannedNode {
	return { name: title, type: `n8n-nodes-idempotent-claim.${type}`, typeVersion: 1, parameters, extra: { credentials: { claimStoreApi: { id, name } } } };
}
