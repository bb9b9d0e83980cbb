import type { INodeProperties } from 'n8n-workflow';
import { PRESETS } from '../../providers';
import { RECOVERABLE } from '../../store/statements/takeDueClaims';
import { leaseSecondsProperty, resultFieldProperty } from '../shared/properties';
import { MAX_LIMIT } from './readLook';

/** What the editor shows of the node; n8n puts Poll Times before it. */
export const properties: INodeProperties[] = [
	{
		displayName: 'Takes the claims of one sender and one job. Choose the same Provider or Source, and type the same Action, as in the Idempotent Claim node whose deliveries are to be worked off. Where that node still has its default, its Action is the ID of its workflow. Its options When Lease Expires and Maximum Attempts hold for the work that is done here, too.',
		name: 'sameAction',
		type: 'notice',
		default: '',
	},
	{
		displayName: 'Provider',
		name: 'provider',
		type: 'options',
		default: 'custom',
		options: [
			{ name: 'Custom', value: 'custom', description: 'Any sender: give its Source' },
			...PRESETS.map(({ displayName, slug }) => ({ name: displayName, value: slug, description: `Claims that Idempotent Claim made with its provider ${displayName}` })),
		],
		description: 'Who sent the deliveries',
	},
	{
		displayName: 'Source',
		name: 'source',
		type: 'string',
		required: true,
		default: '',
		placeholder: 'e.g. my-shop',
		displayOptions: { show: { provider: ['custom'] } },
		description: 'The Source of the Idempotent Claim node, compared exactly',
	},
	{
		displayName: 'Action',
		name: 'action',
		type: 'string',
		required: true,
		default: '',
		placeholder: 'e.g. create-lead',
		description: 'The Action of the Idempotent Claim node, compared exactly, so that no other job is run on its deliveries',
	},
	{
		displayName: 'Recover',
		name: 'recover',
		type: 'multiOptions',
		default: [...RECOVERABLE],
		options: [
			{ name: 'Expired Leases', value: 'expiredLeases', description: 'Work that nobody finished: ready to run where When Lease Expires is Take Over, else to be reconciled first' },
			{ name: 'Received', value: 'received', description: 'Deliveries that the operation Receive has stored' },
			{ name: 'Retryable Failures', value: 'retryableFailures', description: 'Work that failed without effect, as soon as its retry is due' },
			{ name: 'Uncertain Outcomes', value: 'uncertainOutcomes', description: 'Work that may have happened: to be reconciled first' },
		],
		description: 'Which unfinished work is taken',
	},
	{
		displayName: 'Limit',
		name: 'limit',
		type: 'number',
		typeOptions: { minValue: 1, maxValue: MAX_LIMIT, numberPrecision: 0 },
		default: 20,
		description: 'Max number of claims to take at each poll, oldest first; each starts an execution of its own',
	},
	leaseSecondsProperty('How long an execution may work on its claim before it counts as unfinished again. Longer than the wait for its turn and the action ever take; at most 31 days.'),
	{
		displayName: 'Options',
		name: 'options',
		type: 'collection',
		placeholder: 'Add option',
		default: {},
		options: [
			resultFieldProperty('Name of the field that is added to the stored delivery'),
		],
	},
];
