import type { Place, ProviderPreset } from './preset';

/** What an item says about its delivery; undefined where the item does not say it. Nothing is checked here. */
export interface Delivery {
	readonly deliveryId: unknown;
	readonly account: unknown;
	readonly eventType: unknown;
}

/** Reads a Webhook node's item (`headers`, `body`), or an element that was split from a Webhook's body. */
export function readDelivery(preset: ProviderPreset, itemJson: Record<string, unknown>): Delivery {
	const isWebhookItem = isObject(itemJson.headers) && 'body' in itemJson;
	const headers = isWebhookItem ? itemJson.headers : {};
	const body = isWebhookItem ? itemJson.body : itemJson;
	const find = (places: readonly Place[]): unknown => {
		for (const place of places) {
			const value = 'header' in place ? valueAt(headers, [place.header]) : valueAt(body, place.body);
			if (value !== undefined && value !== null && value !== '') return value;
		}
		return undefined;
	};
	return { deliveryId: find(preset.deliveryId), account: find(preset.account), eventType: find(preset.eventType) };
}

/** A place as a person would look for it. */
export function placeInWords(place: Place): string {
	return 'header' in place ? `the header ${place.header}` : `the body's field ${place.body.join('.')}`;
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
