/** Where a sender puts something: a request header (lower case) or a path into the body. */
export type Place = { readonly header: string } | { readonly body: readonly string[] };

/** What is known about one sender. Data only: `readDelivery` reads every preset's deliveries the same way. */
export interface ProviderPreset {
	/**
	 * Stored as the claim's source. The identity rule under a published slug never changes, or stored claims would no
	 * longer be found: a better rule is a new slug.
	 */
	readonly slug: string;
	readonly displayName: string;
	/** The sender's documented, retry-stable identifier; the first place that has a value counts. */
	readonly deliveryId: readonly Place[];
	readonly account: readonly Place[];
	readonly eventType: readonly Place[];
	/** Days that a finished claim is remembered: longer than the sender's redelivery window. */
	readonly retentionDays: number;
	/** HTTP status that the sender takes for success, where 200 will not do. */
	readonly successCode?: number;
	/** Where these facts were read. */
	readonly documentation: string;
}
