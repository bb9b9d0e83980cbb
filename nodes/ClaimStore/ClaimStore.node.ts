import { NodeConnectionTypes, type IExecuteFunctions, type INodeExecutionData, type INodeType, type INodeTypeDescription } from 'n8n-workflow';
import { testClaimStoreCredential } from '../shared/credentialTest';
import { properties } from './properties';
import { runOperation } from './runOperation';

export class ClaimStore implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Claim Store',
		name: 'claimStore',
		icon: { light: 'file:claimStore.svg', dark: 'file:claimStore.dark.svg' },
		group: ['transform'],
		version: 1,
		subtitle: '={{ ({ check: "check", get: "get", getMany: "get many", purge: "purge", resolve: "resolve", summarize: "summarize" })[$parameter["operation"]] }}',
		// An agent that has the node as a tool reads it as well.
		description: 'Look up, count, resolve and purge claims: the records that say which webhook deliveries were worked on, by which execution, in which state each is, and what came of it',
		defaults: { name: 'Claim Store' },
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		usableAsTool: true,
		credentials: [{ name: 'claimStoreApi', required: true, testedBy: 'testClaimStoreCredential' }],
		properties,
	};

	methods = { credentialTest: { testClaimStoreCredential } };

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return await runOperation(this);
	}
}
