import type { Condition, OtherRequest, Part, Place, ProviderPreset } from './preset';

/** What an item says about its delivery; undefined where the item does not say it. Values are not checked here. */
export interface Delivery {
	/** One for each part of the ID; an ID that is not composite has one part. */
	readonly idParts: readonly FoundPart[];
	readonly account: unknown;
	readonly eventType: unknown;
	/** The item is no delivery, but this. */
	readonly otherRequest: OtherRequest | undefined;
}

export interface FoundPart {
	/** Where it was looked for. */
	readonly at: readonly Place[];
	readonly value: unknown;
	/** Whether this delivery may come without it. */
	readonly mayBeAbsent: boolean;
}

/** Reads a Webhook node's item (`headers`, `body`), or an element that was split from a Webhook's body. */
export function readDelivery(preset: ProviderPreset, itemJson: Record<string, unknown>): Delivery {
	const { headers, body } = requestOf(itemJson);
	const find = (places: readonly Place[]): unknown => places.map((place) => valueAtPlace(place, headers, body)).find((value) => value !== undefined);
	const isTrue = ({ at, is }: Condition) => {
		const value = find([at]);
		return value !== undefined && (is === undefined || is.some((one) => one === value));
	};
	const mayBeAbsent = ({ mayBeAbsent: when }: Part) => when === true || (when !== undefined && isTrue(when));
	return {
		idParts: partsOf(preset).map((part) => ({ at: part.at, value: find(part.at), mayBeAbsent: mayBeAbsent(part) })),
		account: find(preset.account),
		eventType: find(preset.eventType),
		otherRequest: preset.otherRequests?.find(({ when }) => isTrue(when)),
	};
}

/** A preset's delivery ID as parts; one that is not composite has one. */
export function partsOf({ deliveryId }: ProviderPreset): readonly Part[] {
	return 'parts' in deliveryId ? deliveryId.parts : [{ at: deliveryId }];
}

/** The text of a composite ID: JSON keeps the parts apart, whatever characters they hold. An absent part is null. */
export function compositeId(parts: ReadonlyArray<string | null>): string {
	return JSON.stringify(parts);
}

/** Headers and body of a Webhook node's item; an element that was split from a body has no headers left. */
export function requestOf(itemJson: Record<string, unknown>): { headers: Record<string, unknown>; body: unknown; isWholeRequest: boolean } {
	return isObject(itemJson.headers) && 'body' in itemJson
		? { headers: itemJson.headers, body: itemJson.body, isWholeRequest: true }
		: { headers: {}, body: itemJson, isWholeRequest: false };
}

function valueAtPlace(place: Place, headers: Record<string, unknown>, body: unknown): unknown {
	const value = 'header' in place ? headerNamed(place.header, headers) : valueAt(body, place.body);
	if (value === undefined || value === null || value === '') return undefined;
	switch (place.as) {
		case 'host':
			return hostOf(value);
		case 'decimal':
			return typeof value === 'number' && Number.isFinite(value) && !Number.isInteger(value) ? String(value) : value;
		case undefined:
			return value;
	}
}

/** n8n hands on header names in lower case; an item from elsewhere may not. */
function headerNamed(name: string, headers: Record<string, unknown>): unknown {
	const key = Object.hasOwn(headers, name) ? name : Object.keys(headers).find((one) => one.toLowerCase() === name);
	return key === undefined ? undefined : headers[key];
}

function hostOf(address: unknown): string | undefined {
	return typeof address === 'string' && URL.canParse(address) ? new URL(address).host : undefined;
}

function valueAt(from: unknown, path: readonly string[]): unknown {
	let value = from;
	for (const key of path) {
		if (!isObject(value) || !Object.hasOwn(value, key)) return undefined;
		value = value[key];
	}
	return value;
}

function isObject(value: unknown): value is Record<string, unknown> {
	return value !== null && typeof value === 'object' && !Array.isArray(value);
}
