import { sandboxAddress } from './support/address';
import { N8n } from './support/n8n';

interface NodeType {
	name: string;
	displayName: string;
	outputs: string[];
	outputNames?: string[];
	iconUrl: { light: string; dark: string };
	credentials: Array<{ name: string }>;
}

test('n8n has loaded the packed package: its four nodes under their type names, with outputs, credential and icons', async () => {
	const { rest } = new N8n();
	const names = ['idempotentClaim', 'completeClaim', 'claimRecoveryTrigger', 'claimStore'].map((name) => `n8n-nodes-idempotent-claim.${name}`);
	const types = await rest.post<NodeType[]>('/rest/node-types', { nodeInfos: names.map((name) => ({ name, version: 1 })) });

	// Asked for by their full names; n8n answers with the nodes' own.
	expect(types).toMatchObject([
		{ name: 'idempotentClaim', displayName: 'Idempotent Claim', outputNames: ['New Claim', 'Known Duplicate', 'Operational Error'], credentials: [{ name: 'claimStoreApi' }] },
		{ name: 'completeClaim', displayName: 'Complete Claim', outputNames: ['Recorded', 'Stale Claim', 'Operational Error'], credentials: [{ name: 'claimStoreApi' }] },
		{ name: 'claimRecoveryTrigger', displayName: 'Claim Recovery Trigger', outputNames: ['Ready to Run', 'Reconcile First'], credentials: [{ name: 'claimStoreApi' }] },
		{ name: 'claimStore', displayName: 'Claim Store', outputs: ['main'], credentials: [{ name: 'claimStoreApi' }] },
	]);
	for (const { iconUrl } of types) {
		for (const url of [iconUrl.light, iconUrl.dark]) {
			const icon = await fetch(`${sandboxAddress().n8nUrl}/${url}`);
			expect({ url, status: icon.status, type: icon.headers.get('content-type') }).toEqual({ url, status: 200, type: expect.stringContaining('image/svg+xml') as string });
		}
	}
});
