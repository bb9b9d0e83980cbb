import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import { compositeId, placesInWords, readDelivery, whyNoDeliveryId, type Delivery, type Place, type ProviderPreset } from '../../providers';
import { asClaimError, ClaimError, invalidSetting } from '../../store/errors';
import { mendText, readDeliveryId, readIdentityPart, readNote, type Environment, type Identity } from '../../store/identity';
import { fingerprintOf, MAX_PAYLOAD_BYTES, NO_PAYLOAD, payloadToStore, type StoredPayload } from '../../store/payload';
import type { Operation } from '../../store/record';
import type { ClaimRequest } from '../../store/request';
import { refuseForeignField, refuseUnreadableItem } from '../shared/claimField';
import { DEFAULT_RESULT_FIELD, MAX_LEASE_SECONDS, rawParameter, readChoice, readOptions, readParameter, readPreset, readResultField, readWholeNumber, refuseTypedExpression } from '../shared/parameters';
import { isTestDelivery, tokenOfItem, type NodeRun } from '../shared/run';
import { refuseChangingIds, refuseMissingParts } from './deliveryIdExpression';
import { readPattern } from './deliveryIdPattern';

/** What the node's parameters say about one item: a request, or the reason why there is none. */
export interface ItemReading {
	/** As far as it could be read. */
	identity: Partial<Identity>;
	eventType: string | null;
	resultField: string;
	successCode: number | undefined;
	/** What the delivery ID must match before the request counts, if anything. */
	pattern: RegExp | undefined;
	request: ClaimRequest | null;
	error: ClaimError | null;
}

/** Reads everything that one item's claim depends on. Never throws: what is wrong is in the reading. */
export function readClaimRequest(context: IExecuteFunctions, run: NodeRun, operation: Operation, item: INodeExecutionData, itemIndex: number): ItemReading {
	const reading: ItemReading = { identity: {}, eventType: null, resultField: DEFAULT_RESULT_FIELD, successCode: undefined, pattern: undefined, request: null, error: null };
	try {
		refuseUnreadableItem(item);
		const options = readOptions(context, itemIndex);
		reading.resultField = readResultField(options);
		refuseForeignField(item, reading.resultField);

		const manualExecutions = readChoice('Manual Executions', options.manualExecutions ?? 'separate', ['separate', 'alwaysNew', 'live']);
		const environment: Environment = manualExecutions !== 'live' && (run.isTest || (run.modeIsUnknown && isTestDelivery(item.json))) ? 'test' : 'live';
		reading.identity = { environment };

		for (const [name, label] of IDENTITY_PARAMETERS) refuseTypedExpression(context, name, label, itemIndex);
		const sender = readSender(context, options, item, itemIndex);
		reading.successCode = sender.successCode;
		const source = readIdentityPart('source', sender.source);
		const account = readIdentityPart('account', 'account' in options ? options.account : sender.account);
		const action = readIdentityPart('action', readParameter(context, 'action', 'Action', itemIndex, ''));
		reading.identity = { environment, source, account, action };
		reading.eventType = readNote('Event Type', options.eventType || sender.eventType);

		reading.pattern = readPattern(options.deliveryIdPattern);
		const deliveryId = readDeliveryId(sender.deliveryId());
		const identity: Identity = { deliveryId, source, account, action, environment };
		reading.identity = identity;

		reading.request = {
			identity,
			ownerToken: tokenOfItem(run, itemIndex),
			eventType: reading.eventType,
			fingerprint: readFingerprint(context, options, itemIndex),
			payloadMismatch: readChoice('Payload Mismatch', options.payloadMismatch ?? 'knownDuplicate', ['knownDuplicate', 'operationalError']),
			payload: readPayload(operation, options, item, reading.resultField),
			leaseSeconds: readWholeNumber('Lease (Seconds)', options.leaseSeconds ?? 300, 1, MAX_LEASE_SECONDS),
			whenLeaseExpires: readChoice('When Lease Expires', options.whenLeaseExpires ?? 'outcomeUncertain', ['outcomeUncertain', 'takeOver']),
			maxAttempts: readWholeNumber('Maximum Attempts', options.maxAttempts ?? 5, 1, 1000),
			retentionDays: readWholeNumber('Retention (Days)', sender.retentionDays, 1, 3650),
			takenAnewEachRun: environment === 'test' && manualExecutions === 'alwaysNew',
		};
	} catch (failure) {
		reading.error = asClaimError(failure);
	}
	return reading;
}

const MAX_EVENT_TYPE_CHARACTERS = 200;

/** Parameters that make up the identity, and what the editor calls them. */
const IDENTITY_PARAMETERS = [
	['source', 'Source'],
	['deliveryId', 'Delivery ID'],
	['action', 'Action'],
	['options.account', 'Account'],
	['options.deliveryIdOverride', 'Delivery ID Override'],
] as const;

interface Sender {
	source: unknown;
	account: unknown;
	eventType: unknown;
	/** @throws ClaimError when the item does not have it */
	deliveryId: () => unknown;
	retentionDays: unknown;
	successCode: number | undefined;
}

function readSender(context: IExecuteFunctions, options: Record<string, unknown>, item: INodeExecutionData, itemIndex: number): Sender {
	const provider = readParameter(context, 'provider', 'Provider', itemIndex);
	const whole = (parameter: string, id: unknown) => {
		refuseMissingParts(context, parameter, itemIndex, id);
		return id;
	};
	if (provider === 'custom') {
		refuseChangingIds(context, 'deliveryId', itemIndex);
		return {
			source: readParameter(context, 'source', 'Source', itemIndex, ''),
			account: '',
			eventType: null,
			deliveryId: () => whole('deliveryId', readParameter(context, 'deliveryId', 'Delivery ID', itemIndex, '')),
			retentionDays: readParameter(context, 'retentionDays', 'Retention (Days)', itemIndex, 30),
			successCode: undefined,
		};
	}
	const preset = readPreset(provider);
	const delivery = readDelivery(preset, item.json);
	const isOverridden = 'deliveryIdOverride' in options && delivery.otherRequest === undefined;
	if ('deliveryIdOverride' in options) refuseChangingIds(context, 'options.deliveryIdOverride', itemIndex);
	return {
		source: preset.slug,
		account: delivery.account ?? '',
		// Only for people to read: a malformed one is no reason to refuse the delivery.
		eventType: mendText(delivery.eventType, MAX_EVENT_TYPE_CHARACTERS),
		deliveryId: () => (isOverridden ? whole('options.deliveryIdOverride', options.deliveryIdOverride) : presetDeliveryId(preset, delivery, item)),
		retentionDays: options.retentionDays ?? preset.retentionDays,
		successCode: preset.successCode,
	};
}

/** @throws ClaimError when something of the ID is missing, or a part of a composite one cannot be used */
function presetDeliveryId(preset: ProviderPreset, delivery: Delivery, item: INodeExecutionData): unknown {
	const gap = whyNoDeliveryId(preset, delivery, item.json, hasBinary(item));
	if (gap) throw new ClaimError('missing_delivery_id', gap.message, { hint: gap.doFirst });
	if (!('parts' in preset.deliveryId)) return delivery.idParts[0].value;
	return compositeId(delivery.idParts.map(({ at, value }) => (value === undefined ? null : readIdPart(value, at))));
}

/** A part must be what a whole ID must be: a number that was rounded on its way, for instance, is none. */
function readIdPart(value: unknown, at: readonly Place[]): string {
	try {
		return readDeliveryId(value);
	} catch (failure) {
		throw ofPart(at, asClaimError(failure));
	}
}

function ofPart(at: readonly Place[], { kind, message, hint }: ClaimError): ClaimError {
	return new ClaimError(kind, `${message} (${placesInWords(at)})`, { hint: hint ?? undefined });
}

/** An option that was added and left blank is none; an expression that gives an empty text gives a value. */
function readFingerprint(context: IExecuteFunctions, options: Record<string, unknown>, itemIndex: number): string | null {
	if (!('fingerprint' in options)) return null;
	if (options.fingerprint === '' && !rawParameter(context, 'options.fingerprint', itemIndex).startsWith('=')) return null;
	return fingerprintOf(options.fingerprint);
}

function readPayload(operation: Operation, options: Record<string, unknown>, item: INodeExecutionData, resultField: string): StoredPayload {
	const storePayload = readChoice('Store Payload', options.storePayload ?? 'untilFinished', ['untilFinished', 'never']);
	if (operation === 'deduplicate') return NO_PAYLOAD;
	if (operation === 'receive') {
		const impossible = (what: string, hint: string) => invalidSetting(`Receive stores the delivery for later work, and ${what}`, hint);
		if (storePayload === 'never') throw impossible('Store Payload is Never', 'Set Store Payload to Until Finished.');
		if (hasBinary(item)) throw impossible('binary data is not kept', 'Store the file elsewhere first and hand on its address, or use the operation Claim.');
	}
	if (storePayload === 'never') return NO_PAYLOAD;
	const { [resultField]: _earlierClaim, ...json } = item.json;
	const payload = payloadToStore(json, hasBinary(item));
	if (operation === 'receive' && payload.json === null) {
		throw invalidSetting(`Receive keeps at most ${MAX_PAYLOAD_BYTES / 1024 / 1024} MiB of an item, and this one is larger`, 'Keep only the fields that the work needs, e.g. with Edit Fields, or use the operation Claim.');
	}
	return payload;
}

function hasBinary(item: INodeExecutionData): boolean {
	return Object.keys(item.binary ?? {}).length > 0;
}
