import type { INodeProperties, INodePropertyCollection, INodePropertyOptions } from 'n8n-workflow';
import { ClaimStoreApi } from '../../credentials/ClaimStoreApi.credentials';
import { ClaimRecoveryTrigger } from '../../nodes/ClaimRecoveryTrigger/ClaimRecoveryTrigger.node';
import { ClaimStore } from '../../nodes/ClaimStore/ClaimStore.node';
import { CompleteClaim } from '../../nodes/CompleteClaim/CompleteClaim.node';
import { IdempotentClaim } from '../../nodes/IdempotentClaim/IdempotentClaim.node';

const LISTS: Array<[string, INodeProperties[]]> = [
	['Idempotent Claim', new IdempotentClaim().description.properties],
	['Complete Claim', new CompleteClaim().description.properties],
	['Claim Recovery Trigger', new ClaimRecoveryTrigger().description.properties],
	['Claim Store', new ClaimStore().description.properties],
	['the credential', new ClaimStoreApi().properties],
];

const isProperty = (option: INodePropertyOptions | INodeProperties | INodePropertyCollection): option is INodeProperties => 'type' in option;

/** What the conditions of a list of parameters, and of the lists inside it, name without there being such a parameter beside them. */
function unknownIn(properties: INodeProperties[]): string[] {
	const names = properties.map(({ name }) => name);
	const named = properties.flatMap(({ displayOptions = {} }) => Object.values(displayOptions).flatMap((rule) => Object.keys(rule as object)));
	const inside = properties.flatMap(({ options = [] }) => unknownIn(options.filter(isProperty)));
	return [...named.filter((name) => !/^[@/]/.test(name) && !names.includes(name)), ...inside];
}

// n8n before 2.41 waits for such a parameter in vain ("Could not resolve parameter dependencies"), and activates no workflow with the node.
test.each(LISTS)('%s: what a parameter depends on is beside it, or named from the root', (_name, properties) => {
	expect(unknownIn(properties)).toEqual([]);
});
