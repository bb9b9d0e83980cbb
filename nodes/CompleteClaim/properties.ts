import type { INodeProperties } from 'n8n-workflow';
import { PARAMETERS } from './readOutcome';
import { leaseSecondsProperty, resultFieldProperty } from '../shared/properties';

const UNCERTAIN = { name: 'Outcome Uncertain', value: 'outcomeUncertain', description: 'The action may have happened: it must be looked up before anything is repeated' };
const REVIEW = { name: 'Needs Review', value: 'needsReview', description: 'A person must decide' };

/** What the editor shows of the node. */
export const properties: INodeProperties[] = [
	{
		displayName: 'Claim From',
		name: 'claimFrom',
		type: 'options',
		noDataExpression: true,
		default: 'upstream',
		options: [
			{ name: 'Execution', value: 'execution', description: 'Every claim that a failed execution left in processing; for error workflows' },
			{ name: 'Handle', value: 'handle', description: 'The claim that a handle names; for sub-workflows and other executions' },
			{ name: 'Upstream', value: 'upstream', description: 'The claim of the Idempotent Claim or Claim Recovery Trigger node that this item comes from' },
		],
		description: 'Which claim the outcome belongs to',
	},
	{
		displayName: 'Handle',
		name: 'handle',
		type: 'string',
		required: true,
		default: '',
		placeholder: 'e.g. {{ $json.claim.handle }}',
		displayOptions: { show: { claimFrom: ['handle'] } },
		description: 'The text of claim.handle as Idempotent Claim or Claim Recovery Trigger gave it',
	},
	{
		displayName: 'Execution ID',
		name: 'executionId',
		type: 'string',
		required: true,
		default: '={{ $json.execution.id }}',
		displayOptions: { show: { claimFrom: ['execution'] } },
		description: 'The failed execution of this n8n; in an error workflow the Error Trigger gives it',
	},
	{
		displayName: 'Outcome',
		name: 'outcome',
		type: 'options',
		default: 'completed',
		displayOptions: { hide: { claimFrom: ['execution'] } },
		options: [
			{ name: 'Completed', value: 'completed', description: 'The action happened' },
			{ name: 'Extend Lease', value: 'extendLease', description: 'No outcome yet: check that this run still owns the claim, and get a full lease for it' },
			REVIEW,
			{ name: 'No Action Needed', value: 'noActionNeeded', description: 'Finished without an action, e.g. by a business rule' },
			UNCERTAIN,
			{ name: 'Retryable Failure', value: 'retryableFailure', description: 'The action certainly did not happen, and may be tried again' },
		],
		description: 'What became of the action',
	},
	{
		displayName: 'Outcome',
		name: 'outcome',
		type: 'options',
		default: 'outcomeUncertain',
		displayOptions: { show: { claimFrom: ['execution'] } },
		options: [REVIEW, UNCERTAIN],
		description: 'What to record. A failed execution may still have acted, so these are the two that are safe.',
	},
	{
		displayName: 'Outcome Reference',
		name: 'outcomeReference',
		type: 'string',
		default: '',
		placeholder: 'e.g. {{ $json.id }}',
		displayOptions: { show: { outcome: PARAMETERS.outcomeReference } },
		description: 'The ID of what the action created at the destination; later duplicates carry it. Empty means none.',
	},
	{
		displayName: 'Reason',
		name: 'reason',
		type: 'string',
		default: '',
		placeholder: 'e.g. the CRM answered 429',
		displayOptions: { show: { outcome: PARAMETERS.reason } },
		description: 'Why, in words for the person who reads the record later',
	},
	{
		displayName: 'Retry After (Seconds)',
		name: 'retryAfterSeconds',
		type: 'number',
		typeOptions: { minValue: 0, maxValue: 86400, numberPrecision: 0 },
		default: 60,
		displayOptions: { show: { outcome: PARAMETERS.retryAfterSeconds } },
		description: 'Earliest next attempt. Doubles at each attempt, at most a day; 0 means due at once.',
	},
	{
		...leaseSecondsProperty('How long the claim is owned from now on; at most 31 days'),
		displayOptions: { show: { outcome: PARAMETERS.leaseSeconds } },
	},
	{
		displayName: 'Options',
		name: 'options',
		type: 'collection',
		placeholder: 'Add option',
		default: {},
		options: [
			{
				displayName: 'Keep Payload',
				name: 'keepPayload',
				type: 'boolean',
				default: false,
				description: 'Whether the stored delivery stays in the database when the claim is finished',
			},
			{
				displayName: 'Result',
				name: 'result',
				type: 'json',
				default: '',
				placeholder: 'e.g. {{ { status: $json.status } }}',
				description: 'Small JSON that is stored with the outcome and handed to later duplicates; at most 64 KiB',
			},
			resultFieldProperty('Name of the field that holds the claim; a field of that name is replaced'),
		],
	},
];
