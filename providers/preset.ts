/** Where a sender puts something: a request header (lower case) or a path into the body. */
export type Place = ({ readonly header: string } | { readonly body: readonly string[] }) & {
	/** `host`: the host name of the address that stands there. `decimal`: a number with a fraction, as its text. */
	readonly as?: 'host' | 'decimal';
};

/** True of a delivery that has one of these values at a place; without values, one that has any. */
export interface Condition {
	readonly at: Place;
	readonly is?: ReadonlyArray<string | number>;
}

/** One part of a composite delivery ID; the first place that has a value counts. */
export interface Part {
	readonly at: readonly Place[];
	/**
	 * When the part may be missing, as the sender's facts say: in some of its events (`true`), or only in deliveries of
	 * which a condition is true. Anywhere else a missing part is a missing ID.
	 */
	readonly mayBeAbsent?: true | Condition;
}

/** A delivery ID that is put together: each part is needed, because no single field identifies a delivery. */
export interface Composite {
	readonly parts: readonly Part[];
}

/** A request that comes to the same address and is no delivery: a handshake, a test, another product's events. */
export interface OtherRequest {
	/** As in "This is …, not a delivery". */
	readonly what: string;
	readonly when: Condition;
	/** What to do about it before the claim, in whole sentences. */
	readonly doFirst: string;
}

/** Where facts were read: `copy` is the sender's own text in somebody's copy. */
export interface Source {
	readonly readIn: 'documentation' | 'copy' | 'sourceCode' | 'thirdParty';
	readonly url: string;
	/** What was found again in public material, and when. Left out: nothing has been, since the facts were gathered. */
	readonly checked?: { readonly on: string; readonly what: string };
}

/**
 * What is known about one sender. Data only: `readDelivery` reads every preset's deliveries the same way.
 *
 * Published rules never change. `slug`, `deliveryId` and `account` are the claim's identity: under another rule, stored
 * claims would no longer be found, and every redelivery would be new. Nothing may be added to them either, not even a
 * place at the end: a delivery that had an ID must never have another. A better rule is a new preset in a file of its
 * own, under a slug of its own (`example-2`). The old one stays in the list, with a display name that points to the new
 * one, so that workflows which use it, and Claim Recovery Triggers that look for its claims, go on finding them.
 * `test/providers/publishedRules.test.ts` holds each rule's result as fixed text. All the rest may change at any time.
 */
export interface ProviderPreset {
	/** Stored as the claim's source. */
	readonly slug: string;
	readonly displayName: string;
	/** The sender's retry-stable identifier: the first place that has a value, or several parts. */
	readonly deliveryId: readonly Place[] | Composite;
	readonly account: readonly Place[];
	readonly eventType: readonly Place[];
	/** Days that a finished claim is remembered: longer than the sender's redelivery window. */
	readonly retentionDays: number;
	/** How long one delivery can come again: hours, rounded up (`null`: nobody says), and as in "Comes again …". */
	readonly comesAgain: { readonly hours: number | null; readonly words: string };
	/** Whether the sender says that a retry carries the same ID. */
	readonly stability: 'documented' | 'notDocumented';
	/** What a person should know before relying on it, in whole sentences. */
	readonly caveat?: string;
	/** The sender posts an array of events: each element is an item, and a claim, of its own. */
	readonly postsArrays?: true;
	readonly otherRequests?: readonly OtherRequest[];
	/** HTTP status that the sender takes for success, where 200 will not do. */
	readonly successCode?: number;
	readonly source: Source;
}
