import type { INodeProperties } from 'n8n-workflow';
import { comesAgainInShort, deliveryIdInShort, noticesOf, PRESETS, retentionTooShort, windowInDays } from '../../providers';
import { leaseSecondsProperty, resultFieldProperty } from '../shared/properties';

const presetSlugs = PRESETS.map(({ slug }) => slug);

/** What is to be known about the chosen sender, before anything runs. */
const senderNotices = PRESETS.flatMap((preset) =>
	// A notice for each topic: n8n takes line breaks out of them.
	noticesOf(preset).map((text): INodeProperties => ({ displayName: text, name: 'aboutSender', type: 'notice', default: '', displayOptions: { show: { provider: [preset.slug] } } })),
);

/** Beside a Retention that was set below the sender's window. A day is the least, so shorter windows cannot be missed. */
const retentionNotices = PRESETS.flatMap((preset): INodeProperties[] => {
	const days = windowInDays(preset) ?? 0;
	if (days <= 1) return [];
	// From the root, as `/` says: n8n before 2.41 takes any other path for a parameter that is still to come, waits for it in vain, and runs no workflow with this node.
	const show = { provider: [preset.slug], '/options.retentionDays': [{ _cnd: { lt: days } }] };
	return [{ displayName: retentionTooShort(preset), name: 'shortRetention', type: 'notice', default: '', displayOptions: { show } }];
});

const options: INodeProperties = {
	displayName: 'Options',
	name: 'options',
	type: 'collection',
	placeholder: 'Add option',
	default: {},
	options: [
		{
			displayName: 'Account',
			name: 'account',
			type: 'string',
			default: '',
			placeholder: 'e.g. {{ $json.body.account_id }}',
			description: 'Which account of the sender the delivery is for, where IDs are only unique within one. Changing it makes older deliveries new.',
		},
		{
			displayName: 'Delivery ID Override',
			name: 'deliveryIdOverride',
			type: 'string',
			default: '',
			placeholder: 'e.g. {{ $json.body.data.object.id }}',
			displayOptions: { show: { '/provider': presetSlugs } },
			description: 'Another identifier than the one that the preset reads',
		},
		{
			displayName: 'Delivery ID Pattern',
			name: 'deliveryIdPattern',
			type: 'string',
			default: '',
			placeholder: 'e.g. ^evt_[A-Za-z0-9]+$',
			description: 'Regular expression that every delivery ID must match; others leave by Operational Error. Avoid nested repetition such as (a+)+: an ID that takes longer than 0.1 s to match is refused.',
		},
		{
			displayName: 'Event Type',
			name: 'eventType',
			type: 'string',
			default: '',
			placeholder: 'e.g. {{ $json.body.type }}',
			description: 'What kind of event this is; stored for people to read, not part of the identity',
		},
		{
			displayName: 'Fingerprint',
			name: 'fingerprint',
			type: 'string',
			default: '',
			placeholder: 'e.g. {{ $json.body }}',
			description: 'Any value that must be the same when the same ID comes again. Its hash is stored, not the value; the order of keys does not matter.',
		},
		leaseSecondsProperty('How long this run may work on the claim before it counts as unfinished. Longer than the action ever takes; at most 31 days.'),
		{
			displayName: 'Manual Executions',
			name: 'manualExecutions',
			type: 'options',
			default: 'separate',
			options: [
				{ name: 'Always New', value: 'alwaysNew', description: 'Test claims are taken anew at each run' },
				{ name: 'Live', value: 'live', description: 'Manual runs claim like real deliveries, and use them up' },
				{ name: 'Separate', value: 'separate', description: 'Manual runs claim in a test environment of their own; what was done live is a duplicate' },
			],
			description: 'What runs in the editor claim',
		},
		{
			displayName: 'Maximum Attempts',
			name: 'maxAttempts',
			type: 'number',
			typeOptions: { minValue: 1, maxValue: 1000, numberPrecision: 0 },
			default: 5,
			description: 'How often the action is begun before a person must decide',
		},
		{
			displayName: 'Payload Mismatch',
			name: 'payloadMismatch',
			type: 'options',
			default: 'knownDuplicate',
			options: [
				{ name: 'Known Duplicate', value: 'knownDuplicate', description: 'Treat it as the delivery it says it is, and set payloadChanged' },
				{ name: 'Operational Error', value: 'operationalError', description: 'Refuse it with payload_mismatch' },
			],
			description: 'What to do with a known ID whose Fingerprint differs',
		},
		resultFieldProperty('Name of the field that is added to each item'),
		{
			displayName: 'Retention (Days)',
			name: 'retentionDays',
			type: 'number',
			typeOptions: { minValue: 1, maxValue: 3650, numberPrecision: 0 },
			default: 30,
			displayOptions: { show: { '/provider': presetSlugs } },
			description: 'How long a finished claim is remembered, instead of the preset\'s days. At least as long as the sender may deliver again.',
		},
		{
			displayName: 'Store Payload',
			name: 'storePayload',
			type: 'options',
			default: 'untilFinished',
			options: [
				{ name: 'Never', value: 'never', description: 'Keep nothing; after a crash the sender must deliver again' },
				{ name: 'Until Finished', value: 'untilFinished', description: 'Keep the item until the claim is finished, at most 1 MiB, without authorization and cookie headers' },
			],
			description: 'Whether the item is kept in the database so that its work can be recovered after a crash. Binary data is never kept.',
		},
		{
			displayName: 'When Lease Expires',
			name: 'whenLeaseExpires',
			type: 'options',
			default: 'outcomeUncertain',
			options: [
				{ name: 'Mark as Outcome Uncertain', value: 'outcomeUncertain', description: 'The action may have happened: look before anything is repeated' },
				{ name: 'Take Over', value: 'takeOver', description: 'The next delivery runs the action again. Only where running it twice does no harm.' },
			],
			description: 'What a later delivery does when this run never recorded an outcome',
		},
	],
};

/** What the editor shows of the node. */
export const properties: INodeProperties[] = [
	{
		displayName: 'Operation',
		name: 'operation',
		type: 'options',
		noDataExpression: true,
		default: 'claim',
		options: [
			{ name: 'Claim', value: 'claim', action: 'Claim a delivery', description: 'Own the delivery under a lease; Complete Claim records what became of it' },
			{ name: 'Deduplicate', value: 'deduplicate', action: 'Deduplicate a delivery', description: 'Only let the first copy through; nothing is recovered after a crash' },
			{ name: 'Receive', value: 'receive', action: 'Receive a delivery for later work', description: 'Store the delivery so that the sender can be answered at once; the work is done later' },
		],
	},
	{
		displayName: 'Provider',
		name: 'provider',
		type: 'options',
		noDataExpression: true,
		default: 'custom',
		options: [
			{ name: 'Custom', value: 'custom', description: 'Any sender: say where its delivery ID is' },
			...PRESETS.map((preset) => ({
				name: preset.displayName,
				value: preset.slug,
				// The list shows two lines, about a hundred characters.
				description: `ID: ${deliveryIdInShort(preset)}. ${comesAgainInShort(preset)}.`,
			})),
		],
		description: 'Who sends the deliveries',
	},
	...senderNotices,
	{
		displayName: 'Source',
		name: 'source',
		type: 'string',
		required: true,
		default: '',
		placeholder: 'e.g. my-shop',
		displayOptions: { show: { provider: ['custom'] } },
		description: 'A short name for the sender. Changing it makes older deliveries new.',
	},
	{
		displayName: 'Delivery ID',
		name: 'deliveryId',
		type: 'string',
		required: true,
		default: '',
		placeholder: 'e.g. {{ $json.headers["x-delivery-id"] }}',
		displayOptions: { show: { provider: ['custom'] } },
		description: 'The identifier that the sender repeats when it delivers the same event again. Never an execution ID, a time, a signature or a hash of the payload. If the webhook is registered more than once at the sender, each registration delivers under an ID of its own: use the event\'s ID then.',
	},
	{
		displayName: 'Action',
		name: 'action',
		type: 'string',
		default: '={{ $workflow.id }}',
		description: 'Which job of the event this is: each action is done once per delivery. Workflows that share claims use the same text. Changing it makes older deliveries new.',
	},
	{
		displayName: 'Retention (Days)',
		name: 'retentionDays',
		type: 'number',
		typeOptions: { minValue: 1, maxValue: 3650, numberPrecision: 0 },
		default: 30,
		displayOptions: { show: { provider: ['custom'] } },
		description: 'How long a finished claim is remembered: at least as long as the sender may deliver again',
	},
	...retentionNotices,
	options,
];
