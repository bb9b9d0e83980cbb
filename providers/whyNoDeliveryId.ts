import type { ProviderPreset } from './preset';
import { partsOf, requestOf, type Delivery } from './readDelivery';
import { placesInWords, SPLIT_FIRST } from './words';

/** Why an item has no delivery ID, and what to do first. */
export interface Explanation {
	readonly message: string;
	readonly doFirst: string;
}

/**
 * @param hasBinary whether the item has binary data beside its JSON
 * @returns undefined when nothing of the ID is missing
 */
export function whyNoDeliveryId(preset: ProviderPreset, delivery: Delivery, itemJson: Record<string, unknown>, hasBinary: boolean): Explanation | undefined {
	if (delivery.otherRequest) return { message: `This is ${delivery.otherRequest.what}, not a delivery`, doFirst: delivery.otherRequest.doFirst };
	const missing = delivery.idParts.filter(({ value, mayBeAbsent }) => value === undefined && !mayBeAbsent);
	if (missing.length === 0) return undefined;

	const { displayName } = preset;
	const noId = `The item has no ${displayName} delivery ID`;
	const { body, isWholeRequest } = requestOf(itemJson);
	if (Array.isArray(body) && isReadFromBody(preset)) {
		return { message: `${noId}: its body is an array, of several events`, doFirst: `To claim each of them, ${SPLIT_FIRST}` };
	}
	if (isWholeRequest && isEmpty(body) && hasBinary) {
		return {
			message: `${noId}: its body is empty, because the request was stored as a file`,
			doFirst: `The Webhook node reads a body whose Content-Type is JSON, form, XML or plain text, and stores any other as binary data: have ${displayName} send application/json. A Webhook node of version 1 must have its option Binary File off. Otherwise read the file with Extract From File before this node, and put its content into the field body, beside headers.`,
		};
	}
	const places = missing.map(({ at }) => placesInWords(at));
	return {
		message: partsOf(preset).length === 1 ? `${noId}: it should be in ${places[0]}` : `${noId}: a part of it is missing, ${places.join(', and ')}`,
		doFirst: `Connect the Webhook node that receives ${displayName} directly, or keep its headers and body; for another sender choose another Provider.`,
	};
}

/** Where a header alone names the delivery, an array under it is one delivery: split, it would have none. */
function isReadFromBody(preset: ProviderPreset): boolean {
	return partsOf(preset).some(({ at }) => at.some((place) => 'body' in place));
}

function isEmpty(body: unknown): boolean {
	return body === undefined || body === null || body === '' || (typeof body === 'object' && Object.keys(body).length === 0);
}
