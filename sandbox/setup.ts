import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from './databases';
import type { N8nRest } from './rest';
import { SENDER_SECRET } from './sender';
import { EXAMPLES_FOLDER, OPERATOR } from './settings';

/** Hosts that the examples send to; the sandbox's destination takes their place. */
const EXAMPLE_HOSTS = ['https://crm.example.com', 'https://alerts.example.com'];
/** The example that the others get as their error workflow. */
const ERROR_WORKFLOW = 'failed-executions';
const SECONDS_TO_PUBLISH = 30;

/**
 * Every five seconds, where the examples look every minute: nobody wants to wait so long in a sandbox. n8n takes no
 * interval below a minute, but several times.
 */
export const POLL_OFTEN = { item: Array.from({ length: 12 }, (_, place) => ({ mode: 'custom', cronExpression: `${place * 5} * * * * *` })) };

export interface Named {
	id: string;
	name: string;
}

interface WorkflowNode {
	name: string;
	type: string;
	typeVersion: number;
	parameters: Record<string, unknown>;
	credentials?: Partial<Credentials>;
}

interface Workflow {
	name: string;
	nodes: WorkflowNode[];
	connections: unknown;
	settings: Record<string, unknown>;
	meta?: Record<string, unknown>;
}

interface StoredWorkflow extends Workflow {
	id: string;
	versionId: string;
	activeVersionId: string | null;
}

export interface ImportedWorkflow extends Named {
	/** Of its first Webhook node; empty where it has none. */
	webhookUrl: string;
}

/** The credentials that the example workflows need, by the type of credential. */
export type Credentials = Record<'claimStoreApi' | 'httpBasicAuth' | 'crypto', Named>;

/** Makes the examples' credentials in n8n, or brings them up to date. */
export async function saveCredentials(rest: N8nRest, store: Database): Promise<Credentials> {
	return {
		claimStoreApi: await saveCredential(rest, 'Sandbox Claim Store', 'claimStoreApi', storeSettings(store, 'idempotent_claims')),
		httpBasicAuth: await saveCredential(rest, 'Sandbox Operator', 'httpBasicAuth', OPERATOR),
		crypto: await saveCredential(rest, 'Sandbox Sender', 'crypto', { hmacSecret: SENDER_SECRET }),
	};
}

/** What the credential is filled in with for this claim table. */
export function storeSettings({ host, port, database, user, password }: Database, table: string): Record<string, unknown> {
	return { connectWith: 'fields', host, port, database, user, password, tls: 'disable', schema: 'public', table, createTable: true };
}

async function saveCredential(rest: N8nRest, name: string, type: string, data: unknown): Promise<Named> {
	const present = (await rest.get<Named[]>('/rest/credentials')).find((credential) => credential.name === name);
	const { id } = present ? await rest.patch<Named>(`/rest/credentials/${present.id}`, { name, type, data }) : await rest.post<Named>('/rest/credentials', { name, type, data });
	return { id, name };
}

/** Imports the example workflows and activates them. @returns them by their file's name without `.json` */
export async function importExamples(rest: N8nRest, credentials: Credentials, destinationUrl: string): Promise<Record<string, ImportedWorkflow>> {
	const names = await exampleNames();
	// Workflows are told their error workflow's ID, so that one comes first.
	names.sort((one, other) => Number(other === ERROR_WORKFLOW) - Number(one === ERROR_WORKFLOW));
	const imported: Record<string, ImportedWorkflow> = {};
	for (const name of names) {
		const workflow = await readExample(name, pointedAt(destinationUrl));
		adapt(workflow, credentials, imported[ERROR_WORKFLOW]?.id);
		imported[name] = await importWorkflow(rest, workflow);
	}
	return imported;
}

/** Their files' names without `.json`. */
export async function exampleNames(): Promise<string[]> {
	return (await readdir(EXAMPLES_FOLDER)).filter((file) => file.endsWith('.json')).map((file) => path.basename(file, '.json'));
}

/** @param edit what is done to the text of its file */
export async function readExample(name: string, edit = (text: string) => text): Promise<Workflow> {
	return JSON.parse(edit(await readFile(path.join(EXAMPLES_FOLDER, `${name}.json`), 'utf8'))) as Workflow;
}

/** Has an example's requests go to this destination. */
export const pointedAt = (destinationUrl: string) => (text: string) => EXAMPLE_HOSTS.reduce((adapted, host) => adapted.replaceAll(host, destinationUrl), text);

/** What a person does by hand after the import: chooses credentials, the error workflow, and when to look. */
export function adapt(workflow: Workflow, { claimStoreApi, httpBasicAuth, crypto }: Partial<Credentials>, errorWorkflow: string | undefined): void {
	const claims = workflow.nodes.filter(({ type }) => /\.(idempotentClaim|claimRecoveryTrigger)$/.test(type));
	if (claims.length > 0) workflow.settings = { ...workflow.settings, errorWorkflow };
	for (const node of workflow.nodes) {
		if (node.type.startsWith('n8n-nodes-idempotent-claim.')) node.credentials = { claimStoreApi };
		if (node.parameters.authentication === 'basicAuth') node.credentials = { httpBasicAuth };
		if (node.type === 'n8n-nodes-base.crypto') node.credentials = { crypto };
		if (node.type.endsWith('.claimRecoveryTrigger')) node.parameters.pollTimes = POLL_OFTEN;
	}
}

/** A workflow that was imported before is left as it is, edits included, unless its file has changed since. */
async function importWorkflow(rest: N8nRest, workflow: Workflow): Promise<ImportedWorkflow> {
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
	const webhook = workflow.nodes.find(({ type }) => type === 'n8n-nodes-base.webhook');
	return { id: stored.id, name: workflow.name, webhookUrl: webhook ? `${rest.url}/webhook/${String(webhook.parameters.path)}` : '' };
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
