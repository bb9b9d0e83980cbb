import { NodeConnectionTypes, type IExecuteFunctions, type INodeExecutionData, type INodeType, type INodeTypeDescription } from 'n8n-workflow';
import { testClaimStoreCredential } from '../shared/credentialTest';
import { completeClaims } from './completeClaims';
import { properties } from './properties';

// eslint-disable-next-line @n8n/community-nodes/node-usable-as-tool -- it routes by three outputs; a tool has one
export class CompleteClaim implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Complete Claim',
		name: 'completeClaim',
		icon: { light: 'file:completeClaim.svg', dark: 'file:completeClaim.dark.svg' },
		group: ['transform'],
		version: 1,
		subtitle:
			'={{ ({ completed: "completed", noActionNeeded: "no action needed", retryableFailure: "retryable failure", outcomeUncertain: "outcome uncertain", needsReview: "needs review", extendLease: "extend lease" })[$parameter["outcome"]] }}',
		description: 'Record what became of a claimed webhook delivery, so that it is neither repeated nor forgotten',
		defaults: { name: 'Complete Claim' },
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main, NodeConnectionTypes.Main, NodeConnectionTypes.Main],
		outputNames: ['Recorded', 'Stale Claim', 'Operational Error'],
		credentials: [{ name: 'claimStoreApi', required: true, testedBy: 'testClaimStoreCredential' }],
		properties,
	};

	methods = { credentialTest: { testClaimStoreCredential } };

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return await completeClaims(this);
	}
}
