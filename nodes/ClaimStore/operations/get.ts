import type { INodeProperties } from 'n8n-workflow';
import { readHandle } from '../../../store/handle';
import { readDeliveryId, readIdentityPart, type Identity } from '../../../store/identity';
import { readChoice, readParameter, refuseTypedExpression } from '../../shared/parameters';
import { claimJson } from '../claimJson';
import { ENVIRONMENT_OPTIONS, ENVIRONMENTS } from '../environments';
import { includePayloadOfOne, readIncludePayload } from '../includePayload';
import { shownFor, type OperationCall, type StoreOperation } from '../operation';

const byIdentity = { show: { getBy: ['identity'] } };

const properties: INodeProperties[] = [
	{
		displayName: 'Get By',
		name: 'getBy',
		type: 'options',
		default: 'identity',
		options: [
			{ name: 'Handle', value: 'handle', description: 'The claim that a handle names, whoever owns it now' },
			{ name: 'Identity', value: 'identity', description: 'The claim with this delivery ID, source, account, action and environment' },
		],
		description: 'How the claim is named. A claim that does not exist gives no item.',
	},
	{
		displayName: 'Handle',
		name: 'handle',
		type: 'string',
		required: true,
		default: '',
		placeholder: 'e.g. {{ $json.handle }}',
		displayOptions: { show: { getBy: ['handle'] } },
		description: 'The text of handle in an item of this node, or of claim.handle in an item of the other claim nodes',
	},
	{
		displayName: 'Source',
		name: 'source',
		type: 'string',
		required: true,
		default: '',
		placeholder: 'e.g. my-shop',
		displayOptions: byIdentity,
		description: 'Who sent the delivery: the Source of the Idempotent Claim node, or its provider in lower case, e.g. github',
	},
	{
		displayName: 'Delivery ID',
		name: 'deliveryId',
		type: 'string',
		required: true,
		default: '',
		placeholder: 'e.g. evt_1Abc',
		displayOptions: byIdentity,
		description: 'The identifier that the sender gave the delivery, exactly as it was sent',
	},
	{
		displayName: 'Account',
		name: 'account',
		type: 'string',
		default: '',
		placeholder: 'e.g. acct_17',
		displayOptions: byIdentity,
		description: 'The account of the sender that the delivery was for; empty where the claim has none',
	},
	{
		displayName: 'Action',
		name: 'action',
		type: 'string',
		default: '',
		placeholder: 'e.g. create-lead',
		displayOptions: byIdentity,
		description: 'The Action of the Idempotent Claim node, compared exactly. Where that node still has its default, it is the ID of its workflow.',
	},
	{
		displayName: 'Environment',
		name: 'environment',
		type: 'options',
		default: 'live',
		displayOptions: byIdentity,
		options: ENVIRONMENT_OPTIONS,
		description: 'Whether the claim is a real one or one of a manual run',
	},
];

export const get: StoreOperation = {
	option: { name: 'Get', value: 'get', action: 'Get a claim', description: 'One claim with its history; no item if there is none' },
	forAgents: true,
	properties: [...shownFor('get', properties), ...includePayloadOfOne],
	prepare(call) {
		const identity = readIdentity(call);
		const withPayload = readIncludePayload(call);
		return async () => {
			const details = await (await call.store()).details(identity);
			return details ? [claimJson(details, withPayload)] : [];
		};
	},
};

function readIdentity({ context, itemIndex }: OperationCall): Identity {
	const read = (name: string, label: string, fallback: unknown = '') => readParameter(context, name, label, itemIndex, fallback);
	if (readChoice('Get By', read('getBy', 'Get By', 'identity'), ['handle', 'identity']) === 'handle') return readHandle(read('handle', 'Handle')).identity;
	for (const [name, label] of TEXTS) refuseTypedExpression(context, name, label, itemIndex);
	return {
		deliveryId: readDeliveryId(read('deliveryId', 'Delivery ID')),
		source: readIdentityPart('source', read('source', 'Source')),
		account: readIdentityPart('account', read('account', 'Account')),
		action: readIdentityPart('action', read('action', 'Action')),
		environment: readChoice('Environment', read('environment', 'Environment', 'live'), ENVIRONMENTS),
	};
}

const TEXTS = [
	['deliveryId', 'Delivery ID'],
	['source', 'Source'],
	['account', 'Account'],
	['action', 'Action'],
] as const;
