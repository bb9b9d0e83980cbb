import type { IDataObject, INodeExecutionData } from 'n8n-workflow';
import { invalidSetting, isStoreTrouble, type ClaimError } from '../../store/errors';
import { handleOf } from '../../store/handle';
import { idempotencyKey, type Identity } from '../../store/identity';
import type { ClaimRecord } from '../../store/record';

/** What is said about one item, before it becomes the item's `claim` field. */
export interface ClaimField {
	status: 'new' | 'duplicate' | 'recorded' | 'stale' | 'error';
	reason: string | null;
	responseCode: number;
	handle: string | null;
	/** As far as the identity could be read. */
	identity: Partial<Identity>;
	eventType: string | null;
	record: ClaimRecord | null;
	payloadChanged: boolean | null;
	error: ClaimError | null;
}

/** The `claim` field of an output item: every key always there, null where it does not apply. */
export function claimFieldJson(field: ClaimField): IDataObject {
	const { record, error } = field;
	const identity: Partial<Identity> = record?.identity ?? field.identity;
	return {
		status: field.status,
		reason: field.reason,
		responseCode: field.responseCode,
		handle: field.handle,
		idempotencyKey: isComplete(identity) ? idempotencyKey(identity) : null,
		environment: identity.environment ?? null,
		source: identity.source ?? null,
		account: identity.account ?? null,
		deliveryId: identity.deliveryId ?? null,
		action: identity.action ?? null,
		eventType: record?.eventType ?? field.eventType,
		state: record?.state ?? null,
		version: record?.version ?? null,
		attempt: record?.attempt ?? null,
		leaseExpiresAt: record?.leaseExpiresAt ?? null,
		retryAt: record?.retryAt ?? null,
		firstSeenAt: record?.firstSeenAt ?? null,
		payloadChanged: field.payloadChanged,
		payloadComplete: record === null ? null : payloadComplete(record),
		outcome: record?.outcome ? { ...(record.outcome as unknown as IDataObject) } : null,
		owner: record ? { workflowId: record.owner.workflowId, executionId: record.owner.executionId, nodeName: record.owner.nodeName } : null,
		error: error
			? { kind: error.kind, message: error.message, hint: error.hint, retryable: error.retryable, sqlState: error.sqlState }
			: null,
	};
}

/** A finished claim whose payload was dropped needs none: that it is incomplete would read like a fault. */
function payloadComplete({ state, payloadComplete: complete }: ClaimRecord): boolean | null {
	return state === 'completed' && !complete ? null : complete;
}

export function handleOfRecord({ identity, ownerToken, version }: ClaimRecord): string {
	return handleOf({ identity, ownerToken, version });
}

function isComplete(identity: Partial<Identity>): identity is Identity {
	const { deliveryId, source, account, action, environment } = identity;
	return [deliveryId, source, account, action, environment].every((part) => part !== undefined);
}

/** The input item with one field more; binary data and pairing kept. Of an item that cannot be read, only that field is left. */
export function withClaim(item: INodeExecutionData, itemIndex: number, resultField: string, claim: IDataObject): INodeExecutionData {
	return {
		json: { ...(readableFields(item) ?? {}), [resultField]: claim },
		...(item.binary && { binary: item.binary }),
		pairedItem: { item: itemIndex },
	};
}

/** A node before may have given no JSON, or a field that throws when it is read: found out before anything is written. */
function readableFields({ json }: Partial<INodeExecutionData>): IDataObject | undefined {
	try {
		return json && { ...json };
	} catch {
		return undefined;
	}
}

/** @throws ClaimError `invalid_setting` when the item could not be handed on */
export function refuseUnreadableItem(item: INodeExecutionData): void {
	if (readableFields(item) !== undefined) return;
	throw invalidSetting('The JSON of the item cannot be read', 'Look at the node before this one: it must give plain data.');
}

/** The `claim` field that an earlier node of this package wrote, recognised by its shape. */
export function isClaimField(value: unknown): value is IDataObject & { status: ClaimField['status']; handle: string | null } {
	return value !== null && typeof value === 'object' && 'handle' in value && 'idempotencyKey' in value && 'status' in value;
}

/** @throws ClaimError `invalid_setting` when the item has a field of that name that is not ours */
export function refuseForeignField(item: INodeExecutionData, resultField: string): void {
	if (!Object.hasOwn(item.json, resultField) || isClaimField(item.json[resultField])) return;
	throw invalidSetting(`The item already has a field "${resultField}"`, 'Choose another Result Field in the node\'s Options, so that this field is not overwritten.');
}

/** An error for a person who looks at the node. */
export function errorInWords({ message, hint }: ClaimError): string {
	return hint === null ? `${message}.` : `${message}. ${hint}`;
}

/** If any item of a run met trouble of the store, the sender is told to come again, whichever item answers it. */
export function withSharedResponseCode(fields: ClaimField[]): ClaimField[] {
	const trouble = fields.some(({ error }) => error !== null && isStoreTrouble(error.kind));
	return trouble ? fields.map((field) => ({ ...field, responseCode: 503 })) : fields;
}
