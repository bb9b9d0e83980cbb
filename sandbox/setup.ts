import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from './databases';
import type { N8nRest } from './rest';

const CREDENTIAL_TYPE = 'claimStoreApi';
const CREDENTIAL_NAME = 'Sandbox Claim Store';
/** Where the examples send their leads; the sandbox's destination takes its place. */
const EXAMPLE_DESTINATION = 'https://crm.example.com';
const SECONDS_TO_PUBLISH = 30;

interface Named {
	id: string;
	name: string;
}

interface WorkflowNode {
	type: string;
	parameters: Record<string, unknown>;
	credentials?: Record<string, Named>;
}

interface Workflow {
	name: string;
	nodes: WorkflowNode[];
	connections: unknown;
	settings: unknown;
	meta?: Record<string, unknown>;
}

interface StoredWorkflow extends Workflow {
	id: string;
	versionId: string;
	activeVersionId: string | null;
}

export interface ImportedWorkflow extends Named {
	webhookUrl: string;
}

/** Makes the claim store's credential in n8n, or brings it up to date. */
export async function saveCredential(rest: N8nRest, store: Database): Promise<Named> {
	const { host, port, database, user, password } = store;
	const wanted = {
		name: CREDENTIAL_NAME,
		type: CREDENTIAL_TYPE,
		data: { connectWith: 'fields', host, port, database, user, password, tls: 'disable', schema: 'public', table: 'idempotent_claims', createTable: true },
	};
	const present = (await rest.get<Named[]>('/rest/credentials')).find(({ name }) => name === CREDENTIAL_NAME);
	return present ? await rest.patch<Named>(`/rest/credentials/${present.id}`, wanted) : await rest.post<Named>('/rest/credentials', wanted);
}

/**
 * Imports one workflow and activates it. A workflow that was imported before is left as it is,
 * edits included, unless its file has changed since.
 */
export async function importWorkflow(rest: N8nRest, file: string, credential: Named, destinationUrl: string): Promise<ImportedWorkflow> {
	const text = (await readFile(file, 'utf8')).replaceAll(EXAMPLE_DESTINATION, destinationUrl);
	const workflow = JSON.parse(text) as Workflow;
	for (const node of workflow.nodes) {
		if (node.type.startsWith('n8n-nodes-idempotent-claim.')) {
			node.credentials = { [CREDENTIAL_TYPE]: { id: credential.id, name: credential.name } };
		}
	}
	const version = createHash('sha256').update(JSON.stringify(workflow)).digest('hex');
	workflow.meta = { ...workflow.meta, sandboxVersion: version };

	const known = (await rest.get<Named[]>('/rest/workflows')).find(({ name }) => name === workflow.name);
	let stored: StoredWorkflow;
	if (known) {
		stored = await rest.get<StoredWorkflow>(`/rest/workflows/${known.id}`);
		if (stored.meta?.sandboxVersion !== version) {
			stored = await rest.patch<StoredWorkflow>(`/rest/workflows/${known.id}`, { ...workflow, versionId: stored.versionId });
		}
	} else {
		stored = await rest.post<StoredWorkflow>('/rest/workflows', workflow);
	}
	if (stored.activeVersionId !== stored.versionId) {
		await rest.post(`/rest/workflows/${stored.id}/activate`, { versionId: stored.versionId });
		await whenPublished(rest, stored);
	}
	return { id: stored.id, name: workflow.name, webhookUrl: `${rest.url}/webhook/${webhookPath(workflow, file)}` };
}

/** n8n answers an activation at once, and registers the webhook a moment later. */
async function whenPublished(rest: N8nRest, { id, name, versionId }: StoredWorkflow): Promise<void> {
	const deadline = Date.now() + SECONDS_TO_PUBLISH * 1000;
	for (;;) {
		const publication = await rest.get<{ status: string; liveVersionId: string | null }>(`/rest/workflows/${id}/publication-status`);
		if (publication.status === 'published' && publication.liveVersionId === versionId) return;
		if (publication.status === 'failed' || Date.now() > deadline) {
			throw new Error(`n8n did not activate the workflow "${name}": ${JSON.stringify(publication)}`);
		}
		await sleep(200);
	}
}

function webhookPath(workflow: Workflow, file: string): string {
	const webhook = workflow.nodes.find(({ type }) => type === 'n8n-nodes-base.webhook');
	if (!webhook) throw new Error(`${path.basename(file)} has no Webhook node`);
	return String(webhook.parameters.path);
}
