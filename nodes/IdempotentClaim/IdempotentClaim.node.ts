import { NodeConnectionTypes, type IExecuteFunctions, type INodeExecutionData, type INodeType, type INodeTypeDescription } from 'n8n-workflow';
import { testClaimStoreCredential } from '../shared/credentialTest';
import { claimItems } from './claimItems';
import { properties } from './properties';

// eslint-disable-next-line @n8n/community-nodes/node-usable-as-tool -- it routes by three outputs; a tool has one
export class IdempotentClaim implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Idempotent Claim',
		name: 'idempotentClaim',
		icon: { light: 'file:idempotentClaim.svg', dark: 'file:idempotentClaim.dark.svg' },
		group: ['transform'],
		version: 1,
		subtitle: '={{ $parameter["operation"] + ": " + ($parameter["provider"] === "custom" ? ($parameter["source"] || "custom") : $parameter["provider"]) }}',
		description: 'Run an action once per webhook delivery, even when copies arrive together',
		defaults: { name: 'Idempotent Claim' },
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main, NodeConnectionTypes.Main, NodeConnectionTypes.Main],
		outputNames: ['New Claim', 'Known Duplicate', 'Operational Error'],
		credentials: [{ name: 'claimStoreApi', required: true, testedBy: 'testClaimStoreCredential' }],
		properties,
	};

	methods = { credentialTest: { testClaimStoreCredential } };

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return await claimItems(this);
	}
}
