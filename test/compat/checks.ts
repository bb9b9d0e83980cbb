import { deepStrictEqual as same } from 'node:assert';
import { exampleNames, readExample } from '../../sandbox/setup';
import { until } from '../e2e/support/until';
import type { Site } from './site';
import { guarded, inbox, publish, summary } from './workflows';

const SECONDS_TO_PUBLISH = 60;
const SECONDS_TO_RECOVER = 60;

export interface Check {
	/** The head of its column. */
	title: string;
	/** @throws Error that says what was seen instead */
	holds: (site: Site) => Promise<void>;
}

/** What a user sees, in an order in which each finds what the ones before it have left. */
export const CHECKS: Check[] = [
	{
		title: 'package loads',
		async holds(site) {
			const names = ['idempotentClaim', 'completeClaim', 'claimRecoveryTrigger', 'claimStore'];
			for (const name of names) same(await has(site, `n8n-nodes-idempotent-claim.${name}`, 1), true, `${name} is missing`);
		},
	},
	{
		title: 'credential test',
		async holds({ rest, credential }) {
			const { status, message } = await rest.post<{ status: string; message: string }>('/rest/credentials/test', { credentials: credential });
			same(status, 'OK', message);
		},
	},
	{
		title: 'two copies, one action',
		async holds(site) {
			await publish(site, guarded(site));
			same(await Promise.all([send(site, 'guarded', 'copied'), send(site, 'guarded', 'copied')]), [200, 200]);
			await completedOnce(site, 'copied');
		},
	},
	{
		title: 'store away: 503',
		async holds(site) {
			await site.storeLine.cut();
			same(await send(site, 'guarded', 'refused').finally(site.storeLine.mend), 503);
			same(await site.destination.leads({ deliveryId: 'refused' }), []);
		},
	},
	{
		title: 'durable inbox',
		async holds(site) {
			await publish(site, inbox(site));
			same(await send(site, 'inbox', 'stored'), 200);
			await until('the stored delivery is worked off', SECONDS_TO_RECOVER, async () => (await statesOf(site, 'stored'))[0] === 'completed');
			await completedOnce(site, 'stored');
		},
	},
	{
		title: 'Claim Store',
		async holds(site) {
			await publish(site, summary(site));
			const { claims, completed } = (await (await post(site, 'summary', {})).json()) as Record<string, unknown>;
			same({ claims, completed }, { claims: 2, completed: 2 });
		},
	},
	{
		title: "examples' nodes",
		async holds(site) {
			const missing = new Set<string>();
			for (const example of await exampleNames()) {
				for (const { type, typeVersion } of (await readExample(example)).nodes) {
					if (!(await has(site, type, typeVersion))) missing.add(`${type} ${typeVersion} (${example})`);
				}
			}
			same([...missing], [], `missing: ${[...missing].join(', ')}`);
		},
	},
];

/** Whether n8n knows this node in this version. */
async function has({ rest }: Site, name: string, version: number): Promise<boolean> {
	const [known] = await rest.post<Array<{ version: number | number[] } | undefined>>('/rest/node-types', { nodeInfos: [{ name, version }] }).catch(() => []);
	return known !== undefined && [known.version].flat().includes(version);
}

async function send(site: Site, webhook: string, id: string): Promise<number> {
	return (await post(site, webhook, { id })).status;
}

/** n8n registers a webhook some moments after it has answered that the workflow is active; a 404 has done nothing. */
async function post({ rest }: Site, webhook: string, body: unknown): Promise<Response> {
	let response!: Response;
	await until(`the webhook ${webhook} listens`, SECONDS_TO_PUBLISH, async () => {
		response = await fetch(`${rest.url}/webhook/${webhook}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
		return response.status !== 404;
	});
	return response;
}

async function statesOf({ claimStore }: Site, deliveryId: string): Promise<string[]> {
	const { rows } = await claimStore.query<{ state: string }>('SELECT state FROM idempotent_claims WHERE delivery_id = $1', [deliveryId]);
	return rows.map(({ state }) => state);
}

async function completedOnce(site: Site, deliveryId: string): Promise<void> {
	const leads = await site.destination.leads({ deliveryId });
	same({ actions: leads.length, states: await statesOf(site, deliveryId) }, { actions: 1, states: ['completed'] });
}
