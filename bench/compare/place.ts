import type { N8nRest } from '../../sandbox/rest';
import type { Sandbox } from '../../sandbox/sandbox';
import { storeSettings, type Named } from '../../sandbox/setup';
import { until } from '../../test/e2e/support/until';
import { makeGuards, type Belongings, type Guard } from './guards';

const SECONDS_TO_PUBLISH = 60;
const SECONDS_TO_SETTLE = 120;

/** A guard in a running n8n. */
export interface Subject extends Guard {
	/** Of its webhook. */
	readonly url: string;
	/** Resolves when n8n is done with the executions that it has begun: some of its work comes behind the answer. */
	readonly settled: () => Promise<void>;
}

/** Makes everything that the guards need, and publishes them. The examples are switched off: they look into the store every few seconds. */
export async function publishGuards(sandbox: Sandbox): Promise<Subject[]> {
	const { rest, workflows } = sandbox;
	for (const { id } of Object.values(workflows)) await rest.post(`/rest/workflows/${id}/deactivate`, {});
	const subjects: Subject[] = [];
	for (const guard of makeGuards(await makeBelongings(sandbox))) {
		const id = await publish(rest, guard);
		const unfinished = `/rest/executions?limit=1&filter=${encodeURIComponent(JSON.stringify({ workflowId: id, status: ['new', 'running'] }))}`;
		subjects.push({
			...guard,
			url: `${rest.url}/webhook/${guard.path}`,
			settled: async () => await until(`${guard.title}: every execution has ended`, SECONDS_TO_SETTLE, async () => (await rest.get<{ count: number }>(unfinished)).count === 0),
		});
	}
	return subjects;
}

/** Both credentials have their defaults and lead to the same database, straight and not by the line that the sandbox can cut. */
async function makeBelongings({ rest, claimStore, claimStoreDatabase, destinationUrl }: Sandbox): Promise<Belongings> {
	await claimStore.query('CREATE TABLE deliveries (id text PRIMARY KEY, token text NOT NULL)');
	const { host, port, database, user, password } = claimStoreDatabase;
	const postgres = await makeCredential(rest, 'Compare Postgres', 'postgres', { host, port, database, user, password, ssl: 'disable' });
	const claimStoreApi = await makeCredential(rest, 'Compare Claim Store', 'claimStoreApi', storeSettings(claimStoreDatabase, 'compared_claims'));
	const project = await rest.get<{ id: string }>('/rest/projects/personal');
	const { id: dataTableId } = await rest.post<{ id: string }>(`/rest/projects/${project.id}/data-tables`, { name: 'deliveries', columns: [{ name: 'deliveryId', type: 'string' }] });
	return { destinationUrl, claimStoreApi, postgres, dataTableId };
}

async function makeCredential(rest: N8nRest, name: string, type: string, data: unknown): Promise<Named> {
	const { id } = await rest.post<Named>('/rest/credentials', { name, type, data });
	return { id, name };
}

/** n8n answers an activation at once, and registers the webhook a moment later. */
async function publish(rest: N8nRest, { title, workflow }: Guard): Promise<string> {
	const { id, versionId } = await rest.post<{ id: string; versionId: string }>('/rest/workflows', workflow);
	await rest.post(`/rest/workflows/${id}/activate`, { versionId });
	await until(`"${title}" is published`, SECONDS_TO_PUBLISH, async () => {
		const { status } = await rest.get<{ status: string }>(`/rest/workflows/${id}/publication-status`);
		if (status === 'failed') throw new Error(`n8n did not publish "${title}"`);
		return status === 'published';
	});
	return id;
}
