import type { INodeProperties } from 'n8n-workflow';
import { readParameter, readSwitch } from '../shared/parameters';
import { shownFor, type OperationCall } from './operation';

const property = (description: string): INodeProperties => ({ displayName: 'Include Payload', name: 'includePayload', type: 'boolean', default: false, description });

const WHAT = 'Whether the stored delivery is in the item. It may be large, and hold personal data.';

/** One record is looked at closely: with its payload, unless an agent looks. */
export const includePayloadOfOne: INodeProperties[] = shownFor('get', [
	{ ...property(WHAT), default: true, displayOptions: { hide: { '@tool': [true] } } },
	{ ...property(WHAT), displayOptions: { show: { '@tool': [true] } } },
]);

export const includePayloadOfMany: INodeProperties[] = shownFor('getMany', [property(WHAT)]);

/** @throws ClaimError `invalid_setting` */
export function readIncludePayload({ context, itemIndex }: OperationCall): boolean {
	return readSwitch('Include Payload', readParameter(context, 'includePayload', 'Include Payload', itemIndex, false));
}
