import type { INodeProperties } from 'n8n-workflow';
import { invalidSetting } from '../../../store/errors';
import { readDeliveryId, readIdentityPart, readNote } from '../../../store/identity';
import { STATES } from '../../../store/record';
import type { ClaimFilter } from '../../../store/statements/findClaims';
import { readChoice, readParameter, readSwitch, readWholeNumber, refuseTypedExpression } from '../../shared/parameters';
import { claimJson } from '../claimJson';
import { ENVIRONMENT_OPTIONS, ENVIRONMENTS } from '../environments';
import { includePayloadOfMany, readIncludePayload } from '../includePayload';
import { shownFor, type OperationCall, type StoreOperation } from '../operation';

const MAX_LIMIT = 10_000;
/** Ten years. */
const MAX_AGE_SECONDS = 10 * 365 * 24 * 60 * 60;

const properties: INodeProperties[] = [
	{
		displayName: 'Limit',
		name: 'limit',
		type: 'number',
		typeOptions: { minValue: 1, maxValue: MAX_LIMIT, numberPrecision: 0 },
		default: 50,
		description: 'Max number of results to return, oldest first',
	},
	{
		displayName: 'Filters',
		name: 'filters',
		type: 'collection',
		placeholder: 'Add filter',
		default: {},
		description: 'Which claims to return; all filters must match, and texts are compared exactly. An AI agent may leave a text empty, which matches any.',
		options: [
			{
				displayName: 'Account',
				name: 'account',
				type: 'string',
				default: '',
				placeholder: 'e.g. acct_17',
				description: 'The account of the sender that the delivery was for',
			},
			{
				displayName: 'Action',
				name: 'action',
				type: 'string',
				default: '',
				placeholder: 'e.g. create-lead',
				description: 'The Action of the Idempotent Claim node; its default is the ID of its workflow',
			},
			{
				displayName: 'Delivery ID',
				name: 'deliveryId',
				type: 'string',
				default: '',
				placeholder: 'e.g. evt_1Abc',
				description: 'The identifier that the sender gave the delivery',
			},
			{
				displayName: 'Environment',
				name: 'environment',
				type: 'options',
				default: 'live',
				options: ENVIRONMENT_OPTIONS,
				description: 'Whether the claims are real ones or those of manual runs',
			},
			{
				displayName: 'Execution ID',
				name: 'executionId',
				type: 'string',
				default: '',
				placeholder: 'e.g. 4711',
				description: 'The execution of n8n that owns the claim, or owned it last',
			},
			{
				displayName: 'Lease Expired',
				name: 'leaseExpired',
				type: 'boolean',
				default: true,
				description: 'Whether to return only claims whose lease has ended without an outcome',
			},
			{
				displayName: 'Older Than (Seconds)',
				name: 'olderThanSeconds',
				type: 'number',
				typeOptions: { minValue: 0, maxValue: MAX_AGE_SECONDS, numberPrecision: 0 },
				default: 3600,
				description: 'How long ago the delivery was first seen, at least',
			},
			{
				displayName: 'Source',
				name: 'source',
				type: 'string',
				default: '',
				placeholder: 'e.g. my-shop',
				description: 'Who sent the delivery: the Source of the Idempotent Claim node, or its provider in lower case, e.g. github',
			},
			{
				displayName: 'States',
				name: 'states',
				type: 'multiOptions',
				default: ['outcome_uncertain', 'needs_review'],
				options: [
					{ name: 'Completed', value: 'completed', description: 'Done' },
					{ name: 'Needs Review', value: 'needs_review', description: 'A person must decide' },
					{ name: 'Outcome Uncertain', value: 'outcome_uncertain', description: 'The action may have happened, nobody knows' },
					{ name: 'Processing', value: 'processing', description: 'Owned by an execution, under a lease' },
					{ name: 'Received', value: 'received', description: 'Stored, the action has not begun' },
					{ name: 'Retryable Failure', value: 'retryable_failure', description: 'Failed without effect, to be tried again' },
				],
				description: 'In which states the claims are; none chosen means any',
			},
		],
	},
];

export const getMany: StoreOperation = {
	option: { name: 'Get Many', value: 'getMany', action: 'Get many claims', description: 'The claims that match all filters, oldest first' },
	forAgents: true,
	properties: [...shownFor('getMany', properties), ...includePayloadOfMany],
	prepare(call) {
		const { context, itemIndex } = call;
		const filter = readFilter(call);
		const limit = readWholeNumber('Limit', readParameter(context, 'limit', 'Limit', itemIndex, 50), 1, MAX_LIMIT);
		const withPayload = readIncludePayload(call);
		return async () => (await (await call.store()).find(filter, limit, withPayload)).map((details) => claimJson(details, withPayload));
	},
};

/** A filter whose expression gives nothing is refused: it would match everything. */
function readFilter({ context, itemIndex, isTool }: OperationCall): ClaimFilter {
	const filters = readParameter(context, 'filters', 'the Filters', itemIndex, {}) as Record<string, unknown>;
	const given = <T>(name: keyof typeof LABELS, read: (value: unknown) => T): T | undefined => {
		if (!(name in filters) || (isTool && filters[name] === '')) return undefined;
		refuseTypedExpression(context, `filters.${name}`, LABELS[name], itemIndex);
		return read(filters[name]);
	};
	return {
		deliveryId: given('deliveryId', readDeliveryId),
		source: given('source', (value) => readIdentityPart('source', value)),
		account: given('account', (value) => readIdentityPart('account', value)),
		action: given('action', (value) => readIdentityPart('action', value)),
		environment: given('environment', (value) => readChoice('Environment', value, ENVIRONMENTS)),
		executionId: given('executionId', readExecutionId),
		states: given('states', readStates),
		olderThanSeconds: given('olderThanSeconds', (value) => readWholeNumber('Older Than (Seconds)', value, 0, MAX_AGE_SECONDS)),
		leaseExpired: given('leaseExpired', (value) => readSwitch('Lease Expired', value)),
	};
}

const LABELS = {
	deliveryId: 'Delivery ID',
	source: 'Source',
	account: 'Account',
	action: 'Action',
	environment: 'Environment',
	executionId: 'Execution ID',
	states: 'States',
	olderThanSeconds: 'Older Than (Seconds)',
	leaseExpired: 'Lease Expired',
};

function readExecutionId(value: unknown): string {
	const id = readNote('Execution ID', value);
	if (id === null) throw invalidSetting('The Execution ID is missing', 'Check its expression, or remove the filter.');
	return id;
}

/** An agent, or an expression, may give them as a text with commas. */
function readStates(value: unknown): ClaimFilter['states'] {
	const states = typeof value === 'string' ? value.split(',').map((state) => state.trim()).filter(Boolean) : value;
	if (!Array.isArray(states)) throw invalidSetting('States is not a list', `Choose from ${STATES.join(', ')}.`);
	return states.length === 0 ? undefined : states.map((state) => readChoice('States', state, STATES));
}
