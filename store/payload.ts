import { createHash } from 'node:crypto';
import { ClaimError, invalidSetting } from './errors';

/** Largest payload that is kept in a claim, in bytes of its JSON text. */
export const MAX_PAYLOAD_BYTES = 1024 * 1024;
/** Largest result that is stored with an outcome, in bytes of its JSON text. */
export const MAX_RESULT_BYTES = 64 * 1024;

/** What is kept of a delivery so that its work can be done after a crash. */
export interface StoredPayload {
	/** JSON text, or null when nothing is kept. */
	readonly json: string | null;
	/** Whether the work can be done from it alone. */
	readonly complete: boolean;
}

export const NO_PAYLOAD: StoredPayload = { json: null, complete: false };

/** Request headers that prove who somebody is; they are not needed to do the work again. */
const SECRET_HEADERS = new Set(['authorization', 'cookie']);

/**
 * The part of an item that is stored: its JSON without secret request headers. Larger than MAX_PAYLOAD_BYTES, or
 * nested too deep to be written: nothing is kept, and the claim remembers that.
 *
 * @throws ClaimError `invalid_setting` when the item is not JSON (cycles, BigInt)
 */
export function payloadToStore(itemJson: Record<string, unknown>, hasBinary: boolean): StoredPayload {
	const json = jsonText(withoutSecretHeaders(itemJson), 'The item');
	if (json === TOO_DEEP) return NO_PAYLOAD;
	if (Buffer.byteLength(json) > MAX_PAYLOAD_BYTES) return NO_PAYLOAD;
	return { json, complete: !hasBinary };
}

function withoutSecretHeaders(itemJson: Record<string, unknown>): Record<string, unknown> {
	const { headers } = itemJson;
	if (headers === null || typeof headers !== 'object' || Array.isArray(headers)) return itemJson;
	const kept = Object.entries(headers).filter(([name]) => !SECRET_HEADERS.has(name.toLowerCase()));
	return { ...itemJson, headers: Object.fromEntries(kept) };
}

/**
 * The hash that stands for a fingerprint value. The order of object keys does not matter.
 *
 * @throws ClaimError `invalid_setting` when the value is undefined or not JSON, also where JSON.stringify would pass
 * over it: NaN would be the same as null, and every Map the same as {}
 */
export function fingerprintOf(value: unknown): string {
	if (value === undefined) throw invalidSetting('The Fingerprint is undefined', 'Check its expression: it should give a value for every delivery.');
	const json = jsonText(value, 'The Fingerprint', refuseWhatJsonLoses);
	if (json === TOO_DEEP) throw invalidSetting('The Fingerprint is nested too deep', 'Use only the fields that must not change.');
	const plain: unknown = JSON.parse(json);
	return createHash('sha256').update(JSON.stringify(sortKeys(plain))).digest('base64url');
}

/** A replacer of JSON.stringify. An undefined member is absent, as it is once n8n has stored the item. */
function refuseWhatJsonLoses(this: Record<string, unknown>, key: string, value: unknown): unknown {
	// An invalid date gives null by its own toJSON.
	const what = value === null && this[key] !== null ? 'an invalid date' : lostInJson(value);
	if (what !== undefined) throw invalidSetting(`The Fingerprint holds ${what}, which JSON cannot express`, 'Check its expression: give texts, finite numbers, lists and plain objects.');
	return value;
}

function lostInJson(value: unknown): string | undefined {
	if (typeof value === 'number') return Number.isFinite(value) ? undefined : String(value);
	if (typeof value === 'function' || typeof value === 'symbol') return `a ${typeof value}`;
	if (typeof value !== 'object' || value === null || Array.isArray(value) || ArrayBuffer.isView(value)) return undefined;
	// By its tag, not by its prototype: an expression may have been evaluated in another realm.
	const tag = Object.prototype.toString.call(value).slice('[object '.length, -1);
	return tag === 'Object' ? undefined : `a value of type ${tag}`;
}

function sortKeys(value: unknown): unknown {
	if (Array.isArray(value)) return value.map(sortKeys);
	if (value === null || typeof value !== 'object') return value;
	// Pairs, not an object: integer-like keys of an object are enumerated in an order of their own.
	const pairs = Object.entries(value)
		.sort(([a], [b]) => (a < b ? -1 : 1))
		.map(([key, inner]) => [key, sortKeys(inner)]);
	return { pairs };
}

/**
 * An outcome's result as JSON text. What is such a text already is stored as it is.
 *
 * @throws ClaimError `invalid_setting` when it is not JSON or larger than MAX_RESULT_BYTES
 */
export function resultToStore(value: unknown): string | null {
	if (value === undefined || value === null || value === '') return null;
	const json = typeof value === 'string' && isJson(value) ? asJsonText(value) : jsonText(value, 'The Result');
	if (json === TOO_DEEP) throw invalidSetting('The Result is nested too deep', 'Keep only what later duplicates need, e.g. an ID and a status.');
	if (Buffer.byteLength(json) > MAX_RESULT_BYTES) {
		throw invalidSetting(`The Result is larger than ${MAX_RESULT_BYTES / 1024} KiB`, 'Keep only what later duplicates need, e.g. an ID and a status.');
	}
	return json;
}

function isJson(text: string): boolean {
	try {
		JSON.parse(text);
		return true;
	} catch {
		return false;
	}
}

/** JSON text as it is, since large numbers would be rounded; but half of a surrogate pair can only be stored as an escape. */
function asJsonText(text: string): string | typeof TOO_DEEP {
	if (jsonText(JSON.parse(text), 'The Result') === TOO_DEEP) return TOO_DEEP;
	return text.replace(/\p{Cs}/gu, (half) => `\\u${half.charCodeAt(0).toString(16)}`);
}

const TOO_DEEP = Symbol('too deep');

function jsonText(value: unknown, name: string, replacer?: (this: Record<string, unknown>, key: string, value: unknown) => unknown): string | typeof TOO_DEEP {
	let text: string | undefined;
	try {
		text = JSON.stringify(value, replacer);
	} catch (failure) {
		if (failure instanceof ClaimError) throw failure;
		if (isEngineLimit(failure)) return TOO_DEEP;
		throw invalidSetting(`${name} cannot be written as JSON`, 'It must not refer to itself, nor hold a BigInt.');
	}
	if (text === undefined) throw invalidSetting(`${name} cannot be written as JSON`, 'Functions and undefined are not values.');
	return text;
}

/** JavaScript's stack or its longest text. A value's own toJSON may throw a RangeError as well. */
function isEngineLimit(failure: unknown): boolean {
	return failure instanceof RangeError && /^(?:Maximum call stack size|Invalid string length)/.test(failure.message);
}
