import { NodeConnectionTypes, type INodeExecutionData, type INodeType, type INodeTypeDescription, type IPollFunctions } from 'n8n-workflow';
import { testClaimStoreCredential } from '../shared/credentialTest';
import { properties } from './properties';
import { recoverClaims } from './recoverClaims';

export class ClaimRecoveryTrigger implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Claim Recovery Trigger',
		name: 'claimRecoveryTrigger',
		icon: { light: 'file:claimRecoveryTrigger.svg', dark: 'file:claimRecoveryTrigger.dark.svg' },
		group: ['trigger'],
		version: 1,
		subtitle: '={{ ($parameter["provider"] === "custom" ? ($parameter["source"] || "custom") : $parameter["provider"]) + ": " + ($parameter["action"] || "no action") }}',
		description: 'Starts the workflow for each claimed webhook delivery whose work is not finished: stored for later, failed and due again, or left behind by a crash',
		defaults: { name: 'Claim Recovery Trigger' },
		polling: true,
		inputs: [],
		outputs: [NodeConnectionTypes.Main, NodeConnectionTypes.Main],
		outputNames: ['Ready to Run', 'Reconcile First'],
		credentials: [{ name: 'claimStoreApi', required: true, testedBy: 'testClaimStoreCredential' }],
		properties,
	};

	methods = { credentialTest: { testClaimStoreCredential } };

	async poll(this: IPollFunctions): Promise<INodeExecutionData[][] | null> {
		return await recoverClaims(this);
	}
}
