import type { INodeProperties } from 'n8n-workflow';
import { DEFAULT_RESULT_FIELD, MAX_LEASE_SECONDS } from './parameters';

/** Properties that several nodes have; each says in its own words what they are for there. */

export function leaseSecondsProperty(description: string): INodeProperties {
	return {
		displayName: 'Lease (Seconds)',
		name: 'leaseSeconds',
		type: 'number',
		typeOptions: { minValue: 1, maxValue: MAX_LEASE_SECONDS, numberPrecision: 0 },
		default: 300,
		description,
	};
}

export function resultFieldProperty(description: string): INodeProperties {
	return { displayName: 'Result Field', name: 'resultField', type: 'string', default: DEFAULT_RESULT_FIELD, placeholder: 'e.g. claim', description };
}
