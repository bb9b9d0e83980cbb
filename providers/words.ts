import type { Place, ProviderPreset, Source } from './preset';
import { partsOf } from './readDelivery';

/** What is known about a sender, in words: for the editor, for errors and for the documentation. */

/** A place as a person would look for it. */
export function placeInWords(place: Place): string {
	if ('header' in place) return `the header ${place.header}`;
	const field = `the body's field ${place.body.join('.')}`;
	return place.as === 'host' ? `the host name in ${field}` : field;
}

export function placesInWords(places: readonly Place[]): string {
	return places.map(placeInWords).join(' or ');
}

/** The same in a line, for a list: names alone, and no more than the first parts of a long ID. */
export function deliveryIdInShort(preset: ProviderPreset): string {
	const parts = partsOf(preset);
	if (parts.length === 1) {
		const [{ at }] = parts;
		return `${'header' in at[0] ? 'header' : 'field'} ${at.map(nameOf).join(' or ')}`;
	}
	const names = parts.map(({ at }) => nameOf(at[0]));
	return names.length > PARTS_IN_SHORT ? `${names.slice(0, PARTS_IN_SHORT).join(' + ')} + more` : names.join(' + ');
}

const PARTS_IN_SHORT = 4;

function nameOf(place: Place): string {
	return 'header' in place ? place.header : (place.body.at(-1) ?? '');
}

/** For how long a delivery can come again, in a line. */
export function comesAgainInShort({ comesAgain: { hours } }: ProviderPreset): string {
	if (hours === null) return 'Comes again, nobody says for how long';
	if (hours === 0) return 'Never comes again by itself';
	return `Comes again for up to ${hours > 48 ? daysInWords(Math.ceil(hours / 24)) : hours === 1 ? '1 hour' : `${hours} hours`}`;
}

/** What a person should know who has chosen this provider, topic by topic. */
export function noticesOf(preset: ProviderPreset): string[] {
	const { displayName, caveat, postsArrays, otherRequests = [], stability } = preset;
	return [
		...(stability === 'notDocumented' ? [stabilityUnknown(preset)] : []),
		...(postsArrays ? [`${displayName} posts several events in one array: ${SPLIT_FIRST}`] : []),
		...(caveat === undefined ? [] : [caveat]),
		...otherRequests.map(({ what, doFirst }) => `Not a delivery: ${what}. ${doFirst}`),
	];
}

function stabilityUnknown({ displayName }: ProviderPreset): string {
	return `${displayName} does not document that this delivery ID stays the same when a delivery comes again. Before relying on it, compare claim.deliveryId of a delivery and of a real retry of it.`;
}

export const SPLIT_FIRST = 'put a Split Out node (Fields To Split Out: body) before this node, so that each event is an item, and a claim, of its own.';

/** Whole days for which a delivery can come again; null where nobody says how long. */
export function windowInDays({ comesAgain }: ProviderPreset): number | null {
	return comesAgain.hours === null ? null : Math.ceil(comesAgain.hours / 24);
}

export function daysInWords(days: number): string {
	return days === 1 ? '1 day' : `${days} days`;
}

/** Said wherever finished claims are forgotten before the sender has stopped delivering. */
export function retentionTooShort(preset: ProviderPreset): string {
	const days = daysInWords(windowInDays(preset) ?? 0);
	return `${preset.displayName} may deliver an event again for ${days}. With a Retention below ${days}, its claim may be forgotten by then, and the late delivery is new.`;
}

const READ_IN: Record<Source['readIn'], string> = {
	documentation: "the sender's documentation",
	copy: "the sender's documentation, through a copy",
	sourceCode: "the sender's source code",
	thirdParty: "the sender's documentation, by a third party's account",
};

export function sourceInWords({ readIn }: Source): string {
	return READ_IN[readIn];
}
