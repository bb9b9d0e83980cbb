import { createHash } from 'node:crypto';
import { invalidSetting } from './errors';
import type { Environment, Identity } from './identity';

/** One ownership of one claim: which claim, and which of its successive owners. */
export interface Ownership {
	readonly identity: Identity;
	readonly ownerToken: string;
	/** The fencing number that this ownership got; it rises with every new ownership. */
	readonly version: number;
}

const PREFIX = 'claim1.';

/** The opaque text that travels with an item and names an ownership. It is a capability: do not show it to senders. */
export function handleOf({ identity, ownerToken, version }: Ownership): string {
	const parts = [identity.deliveryId, identity.source, identity.account, identity.action, identity.environment, ownerToken, version];
	return PREFIX + Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/**
 * The ownership that a handle names.
 *
 * @throws ClaimError `invalid_setting` when the text is not a handle
 */
export function readHandle(handle: unknown): Ownership {
	const notAHandle = () =>
		invalidSetting('The handle is not one that Idempotent Claim gave', 'Hand on the text of claim.handle unchanged, e.g. {{ $json.claim.handle }}.');
	if (typeof handle !== 'string' || !handle.startsWith(PREFIX)) throw notAHandle();
	let parts: unknown;
	try {
		parts = JSON.parse(Buffer.from(handle.slice(PREFIX.length), 'base64url').toString('utf8'));
	} catch {
		throw notAHandle();
	}
	if (!Array.isArray(parts) || parts.length !== 7) throw notAHandle();
	const version: unknown = parts.pop();
	if (!isVersion(version) || !parts.every((part): part is string => typeof part === 'string' && !/\0|\p{Cs}/u.test(part))) throw notAHandle();
	const [deliveryId, source, account, action, environment, ownerToken] = parts;
	if (environment !== 'live' && environment !== 'test') throw notAHandle();
	return { identity: { deliveryId, source, account, action, environment: environment satisfies Environment }, ownerToken, version };
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
