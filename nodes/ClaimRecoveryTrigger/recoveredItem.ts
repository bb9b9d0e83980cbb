import type { IDataObject, INodeExecutionData } from 'n8n-workflow';
import type { RecoveredClaim } from '../../store/statements/takeDueClaims';
import { claimFieldJson, handleOfRecord, isClaimField } from '../shared/claimField';

/** Why the claim came to this workflow; for Reconcile First there is one reason. */
function reasonOf({ course, record }: RecoveredClaim): string {
	return course === 'ready' ? record.claimReason : 'outcome_uncertain';
}

/** The stored delivery with one field more; without a stored delivery only that field. */
export function recoveredItem(claim: RecoveredClaim, resultField: string): INodeExecutionData {
	const { record, payload } = claim;
	const field = claimFieldJson({
		status: 'new',
		reason: reasonOf(claim),
		responseCode: 200,
		handle: handleOfRecord(record),
		identity: record.identity,
		eventType: record.eventType,
		record,
		payloadChanged: null,
		error: null,
	});
	return { json: { ...(isFields(payload) ? payload : {}), [resultField]: field } };
}

/** What keeps a claim from being handed on as an item, in words for the person who must decide then. */
export function whyNotAnItem({ course, payload }: RecoveredClaim, resultField: string): string | undefined {
	if (course === 'ready' && !isFields(payload)) return 'The stored delivery is no JSON object, so there is nothing to run the action on';
	if (isFields(payload) && Object.hasOwn(payload, resultField) && !isClaimField(payload[resultField])) {
		return `The stored delivery has a field "${resultField}" of its own: choose another Result Field in the Claim Recovery Trigger, then release the claim`;
	}
	return undefined;
}

function isFields(payload: unknown): payload is IDataObject {
	return payload !== null && typeof payload === 'object' && !Array.isArray(payload);
}
