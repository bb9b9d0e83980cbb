import { createHash } from 'node:crypto';
import { ClaimError, invalidSetting, type ErrorKind } from './errors';

/** `test` keeps what is tried out in the editor apart from what senders deliver. */
export type Environment = 'live' | 'test';

/** What makes two deliveries the same. Compared byte for byte: nothing is trimmed, folded or normalised. */
export interface Identity {
	readonly deliveryId: string;
	readonly source: string;
	/** May be empty. */
	readonly account: string;
	/** Which job of this delivery; may be empty. */
	readonly action: string;
	readonly environment: Environment;
}

/** Longest delivery ID in bytes of UTF-8; with the other parts it stays under a B-tree entry's 2,704 bytes. */
export const MAX_DELIVERY_ID_BYTES = 512;
/** Longest source, account and action in bytes of UTF-8. */
export const MAX_PART_BYTES = 256;

/** Texts that a failed expression or template leaves behind; as an ID they would make all such deliveries one. */
const LEFTOVER_TEXTS = new Set(['undefined', 'null', 'NaN', '[object Object]']);

/**
 * The delivery ID as the text that is stored.
 *
 * @param value what the expression gave: a text, or a safe whole number, which means its decimal text
 * @throws ClaimError `missing_delivery_id` or `invalid_delivery_id`
 */
export function readDeliveryId(value: unknown): string {
	return readText(value, { name: 'delivery ID', missing: 'missing_delivery_id', invalid: 'invalid_delivery_id', maxBytes: MAX_DELIVERY_ID_BYTES });
}

/**
 * Source, account or action as the text that is stored.
 *
 * @throws ClaimError `invalid_setting`
 */
export function readIdentityPart(name: 'source' | 'account' | 'action', value: unknown): string {
	if (value === '' && name !== 'source') return '';
	return readText(value, { name, missing: 'invalid_setting', invalid: 'invalid_setting', maxBytes: MAX_PART_BYTES });
}

interface TextRule {
	name: string;
	missing: ErrorKind;
	invalid: ErrorKind;
	maxBytes: number;
}

function readText(value: unknown, rule: TextRule): string {
	const missing = (what: string) =>
		new ClaimError(rule.missing, `The ${rule.name} is missing: ${what}`, {
			hint: `Check the expression for the ${rule.name}. A substitute is never made up, because it would be different, or the same, for every delivery.`,
		});
	const invalid = (what: string, hint?: string) =>
		new ClaimError(rule.invalid, `The ${rule.name} cannot be used: ${what}`, {
			hint: hint ?? `Check which field the ${rule.name} is read from.`,
		});

	if (value === null || value === undefined) throw missing(`it is ${String(value)}`);
	if (typeof value === 'number') return wholeNumberText(value, invalid);
	if (typeof value !== 'string') {
		throw invalid(`it is ${Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`}, not a text`);
	}
	if (value === '') throw missing('it is empty');
	if (value.trim() === '') throw missing('it is only white space');
	if (LEFTOVER_TEXTS.has(value)) throw missing(`it is the text "${value}", which a failed expression leaves behind`);
	if (value.trim() !== value) throw invalid('it has white space at its start or end', `Remove the white space where the ${rule.name} is set; it is never trimmed here.`);
	if (/\p{Cc}/u.test(value)) throw invalid('it contains a control character');
	if (/\p{Cs}/u.test(value)) throw invalid('it contains half of a surrogate pair, so it is not valid Unicode text');
	if (Buffer.byteLength(value) > rule.maxBytes) {
		throw invalid(`it is longer than ${rule.maxBytes} bytes`, `Choose a shorter identifier for the ${rule.name}; it is never cut, because two long ones could become the same.`);
	}
	return value;
}

function wholeNumberText(value: number, invalid: (what: string, hint?: string) => ClaimError): string {
	if (Number.isNaN(value)) throw invalid('it is NaN');
	if (!Number.isInteger(value)) throw invalid('it is a number that is not whole');
	if (!Number.isSafeInteger(value)) {
		throw invalid(
			'it is a number too large to be exact; it was already rounded before it came here',
			'Let the sender send it as text, or read it from the raw body.',
		);
	}
	return String(value === 0 ? 0 : value);
}

/** The parts of an identity in one fixed order, as JSON array text: no separator that a part could contain. */
export function identityText(identity: Identity): string {
	return JSON.stringify([identity.deliveryId, identity.source, identity.account, identity.action, identity.environment]);
}

/**
 * The key for the destination's own idempotency mechanism: a UUID that is a pure function of the identity, so
 * it is the same at every attempt. Version 8 (RFC 9562, name-based on SHA-256).
 */
export function idempotencyKey(identity: Identity): string {
	const bytes = createHash('sha256').update(`n8n-nodes-idempotent-claim\n${identityText(identity)}`).digest().subarray(0, 16);
	bytes[6] = (bytes[6] & 0x0f) | 0x80;
	bytes[8] = (bytes[8] & 0x3f) | 0x80;
	const hex = bytes.toString('hex');
	return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/**
 * A text for people, or evidence: rather mended or cut than refused, since a refusal would lose more than it saves.
 *
 * @returns null when there is nothing to say
 */
export function mendText(value: unknown, maxCharacters: number): string | null {
	if (value === undefined || value === null || value === '') return null;
	const text = typeof value === 'string' ? value : textOf(value);
	const clean = text.replace(/\0|\p{Cs}/gu, '\uFFFD');
	const characters = [...clean];
	return characters.length > maxCharacters ? `${characters.slice(0, maxCharacters).join('')}…` : clean;
}

function textOf(value: unknown): string {
	try {
		return JSON.stringify(value) ?? typeof value;
	} catch {
		return typeof value;
	}
}

/**
 * A text that is stored beside a claim (event type): as sent, or refused.
 *
 * @returns null when the value is absent or an empty text
 * @throws ClaimError `invalid_setting`
 */
export function readNote(name: string, value: unknown, maxBytes = 2048): string | null {
	if (value === null || value === undefined || value === '') return null;
	const text = typeof value === 'number' && Number.isFinite(value) ? String(value) : value;
	if (typeof text !== 'string') throw invalidSetting(`${name} must be a text`, `Check the expression for ${name}.`);
	if (/\0|\p{Cs}/u.test(text)) throw invalidSetting(`${name} contains a character that cannot be stored`, `Remove NUL characters and broken Unicode from ${name}.`);
	if (Buffer.byteLength(text) > maxBytes) throw invalidSetting(`${name} is longer than ${maxBytes} bytes`, `Shorten ${name}.`);
	return text;
}
