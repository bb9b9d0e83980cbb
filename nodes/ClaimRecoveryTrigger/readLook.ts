import type { IPollFunctions } from 'n8n-workflow';
import { invalidSetting } from '../../store/errors';
import { readIdentityPart } from '../../store/identity';
import { RECOVERABLE, type Recoverable, type RecoveryRequest } from '../../store/statements/takeDueClaims';
import { MAX_LEASE_SECONDS, readChoice, readPreset, readResultField, readTriggerParameter, readWholeNumber, refuseExpressionText } from '../shared/parameters';

/** One look for unfinished work, as the node's parameters describe it. */
export interface Look {
	readonly request: Omit<RecoveryRequest, 'pollId'>;
	readonly resultField: string;
}

/** Claims of one poll at the most. */
export const MAX_LIMIT = 1000;

/**
 * Everything that a poll depends on; read before anything is taken, so that no claim is taken in vain.
 *
 * @throws ClaimError `invalid_setting`
 */
export function readLook(context: IPollFunctions): Look {
	refuseAlwaysOutputData(context);
	const isManual = context.getMode() === 'manual';
	const read = (name: string, label: string, fallback?: unknown) => readTriggerParameter(context, name, label, fallback);
	const limit = readWholeNumber('Limit', read('limit', 'Limit', 20), 1, MAX_LIMIT);
	return {
		request: {
			source: readSource(context),
			action: readAction(context),
			environment: isManual ? 'test' : 'live',
			recover: readKinds(read('recover', 'Recover', RECOVERABLE)),
			limit: isManual ? 1 : limit,
			leaseSeconds: readWholeNumber('Lease (Seconds)', read('leaseSeconds', 'Lease (Seconds)', 300), 1, MAX_LEASE_SECONDS),
		},
		resultField: readResultField(read('options', 'the Options', {}) as Record<string, unknown>),
	};
}

/** With it, the engine adds an empty item to Ready to Run whenever a claim leaves by Reconcile First. */
function refuseAlwaysOutputData(context: IPollFunctions): void {
	if (context.getNode().alwaysOutputData !== true) return;
	throw invalidSetting(
		'Always Output Data is on: it would send an empty item out of Ready to Run whenever a claim leaves by Reconcile First',
		'Switch off "Always Output Data" in this node\'s Settings. Nothing was taken.',
	);
}

function readSource(context: IPollFunctions): string {
	const provider = readTriggerParameter(context, 'provider', 'Provider');
	if (provider === 'custom') return readText(context, 'source', 'Source');
	return readPreset(provider).slug;
}

function readAction(context: IPollFunctions): string {
	const action = readText(context, 'action', 'Action');
	if (action !== '') return action;
	throw invalidSetting(
		'The Action is missing: without one, this workflow would run on claims that were made for another job',
		'Type the same Action text here and in the Idempotent Claim node whose deliveries are to be worked off.',
	);
}

function readText(context: IPollFunctions, name: 'source' | 'action', label: string): string {
	refuseExpressionText(context.getNodeParameter(name, '', { rawExpressions: true }), label);
	return readIdentityPart(name, readTriggerParameter(context, name, label, ''));
}

function readKinds(value: unknown): Recoverable[] {
	if (!Array.isArray(value) || value.length === 0) {
		throw invalidSetting('Recover is empty: nothing would ever be taken', 'Choose in Recover which unfinished work this workflow takes.');
	}
	return value.map((kind) => readChoice('Recover', kind, RECOVERABLE));
}
