import { createHash } from 'node:crypto';
import { invalidSetting, type ClaimError } from './errors';
import type { Identity } from './identity';
import { isState, type State } from './record';

/** One ownership of one claim: which claim, and which of its successive owners. */
export interface Ownership {
	readonly identity: Identity;
	readonly ownerToken: string;
	/** The fencing number that this ownership got; it rises with every new ownership. */
	readonly version: number;
}

const PREFIX = 'claim1.';

/** An ownership together with the state in which a person saw the claim, so that a decision about it can tell whether it has moved. */
export type SeenClaim = Ownership & { readonly state: State };

/** The opaque text that travels with an item and names an ownership. It is a capability: do not show it to senders. */
export function handleOf({ identity, ownerToken, version }: Ownership): string {
	return encode([identity.deliveryId, identity.source, identity.account, identity.action, identity.environment, ownerToken, version]);
}

/** The same for a record that is shown to a person. */
export function handleOfSeen({ identity, ownerToken, version, state }: SeenClaim): string {
	return encode([identity.deliveryId, identity.source, identity.account, identity.action, identity.environment, ownerToken, version, state]);
}

/**
 * The ownership that a handle names.
 *
 * @throws ClaimError `invalid_setting` when the text is not a handle
 */
export function readHandle(handle: unknown): Ownership & { readonly state: State | undefined } {
	if (typeof handle !== 'string' || !handle.startsWith(PREFIX)) throw notAHandle();
	let parts: unknown;
	try {
		parts = JSON.parse(Buffer.from(handle.slice(PREFIX.length), 'base64url').toString('utf8'));
	} catch {
		throw notAHandle();
	}
	if (!Array.isArray(parts)) throw notAHandle();
	const [deliveryId, source, account, action, environment, ownerToken, version, state, ...more] = parts as unknown[];
	const texts = [deliveryId, source, account, action, ownerToken];
	if (!areTexts(texts) || !isVersion(version) || (environment !== 'live' && environment !== 'test') || !(state === undefined || isState(state)) || more.length > 0) throw notAHandle();
	return {
		identity: { deliveryId: texts[0], source: texts[1], account: texts[2], action: texts[3], environment },
		ownerToken: texts[4],
		version,
		state,
	};
}

/**
 * The record that a person saw.
 *
 * @throws ClaimError `invalid_setting` when the text is not a handle, or one that was given to an owner
 */
export function readSeenHandle(handle: unknown): SeenClaim {
	const { state, ...ownership } = readHandle(handle);
	if (state === undefined) throw invalidSetting('The handle is not one of a record', 'Take the handle that Claim Store gives with each record: it tells whether the record has moved since.');
	return { ...ownership, state };
}

function encode(parts: unknown[]): string {
	return PREFIX + Buffer.from(JSON.stringify(parts)).toString('base64url');
}

function notAHandle(): ClaimError {
	return invalidSetting('The handle is not one that Idempotent Claim gave', 'Hand on the text of claim.handle unchanged, e.g. {{ $json.claim.handle }}.');
}

function areTexts(values: unknown[]): values is string[] {
	return values.every((value) => typeof value === 'string' && !/\0|\p{Cs}/u.test(value));
}

/** As PostgreSQL's integer holds it. */
function isVersion(value: unknown): value is number {
	return Number.isInteger(value) && (value as number) > 0 && (value as number) < 2 ** 31;
}

/**
 * The token of one item's ownership. Made before the statement is sent, so that a repeated statement, or n8n's
 * Retry On Fail, recognises its own row; whoever lacks the nonce (another execution, a job re-run from stored
 * data, a restored n8n database) cannot make the same one.
 */
export function makeOwnerToken(parts: { nonce: string; executionId: string; nodeId: string; runIndex: number; itemIndex: number }): string {
	const { nonce, executionId, nodeId, runIndex, itemIndex } = parts;
	return createHash('sha256').update(JSON.stringify([nonce, executionId, nodeId, runIndex, itemIndex])).digest('base64url');
}
