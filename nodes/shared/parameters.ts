import type { IExecuteFunctions, IPollFunctions } from 'n8n-workflow';
import { presetOf, type ProviderPreset } from '../../providers';
import { invalidSetting, type ClaimError } from '../../store/errors';

/**
 * A parameter's value for one item.
 *
 * @throws ClaimError `invalid_setting`; the expression's own error is not repeated: it may quote the payload
 */
export function readParameter(context: IExecuteFunctions, name: string, label: string, itemIndex: number, fallback?: unknown): unknown {
	const known = knownOf(context);
	if (known.has(name)) return known.get(name);
	let value: unknown;
	try {
		value = context.getNodeParameter(name, itemIndex, fallback);
	} catch {
		throw failedExpression(label, 'for this item');
	}
	if (isSameForAllItems(context.getNodeParameter(name, itemIndex, null, { rawExpressions: true }))) known.set(name, value);
	return value;
}

/** By run, the parameters that are the same for all of its items: n8n takes some microseconds for each, and a tenth of a millisecond for an expression. */
const knownByRun = new WeakMap<IExecuteFunctions, Map<string, unknown>>();

function knownOf(context: IExecuteFunctions): Map<string, unknown> {
	const known = knownByRun.get(context) ?? new Map<string, unknown>();
	knownByRun.set(context, known);
	return known;
}

/** Of a parameter as it is written: no expression in it, or one that is about the workflow alone, like the default Action. */
function isSameForAllItems(raw: unknown): boolean {
	if (typeof raw === 'string') return !raw.startsWith('=') || ABOUT_THE_WORKFLOW.test(raw);
	return typeof raw !== 'object' || raw === null || Object.values(raw).every(isSameForAllItems);
}

const ABOUT_THE_WORKFLOW = /^=\{\{\s*\$workflow\.(?:id|name)\s*\}\}$/;

/** As `readParameter`, for a node that begins a workflow and has no items. */
export function readTriggerParameter(context: IPollFunctions, name: string, label: string, fallback?: unknown): unknown {
	try {
		return context.getNodeParameter(name, fallback);
	} catch {
		throw failedExpression(label, '');
	}
}

function failedExpression(label: string, where: string): ClaimError {
	return invalidSetting(`The expression of ${label} failed ${where}`.trim(), `Open the node and look at ${label}: the editor shows what is wrong with the expression.`);
}

/**
 * Refuses a parameter that decides about the identity and is written like an expression but is none: the editor
 * leaves typed braces in Fixed mode, and every delivery would have that same text.
 *
 * @throws ClaimError `invalid_setting`
 */
export function refuseTypedExpression(context: IExecuteFunctions, name: string, label: string, itemIndex: number): void {
	refuseExpressionText(rawParameter(context, name, itemIndex), label);
}

/** The same, of a parameter as it is written. @throws ClaimError `invalid_setting` */
export function refuseExpressionText(raw: unknown, label: string): void {
	if (typeof raw === 'string' && !raw.startsWith('=') && raw.includes('{{')) {
		throw invalidSetting(`${label} is fixed text that looks like an expression`, `Switch ${label} from Fixed to Expression in the node.`);
	}
}

/** A parameter as it is written; an expression begins with =. Empty when it is no text. */
export function rawParameter(context: IExecuteFunctions, name: string, itemIndex: number): string {
	const raw: unknown = context.getNodeParameter(name, itemIndex, '', { rawExpressions: true });
	return typeof raw === 'string' ? raw : '';
}

/** The node's Options, for one item. @throws ClaimError `invalid_setting` */
export function readOptions(context: IExecuteFunctions, itemIndex: number): Record<string, unknown> {
	return readParameter(context, 'options', 'the Options', itemIndex, {}) as Record<string, unknown>;
}

/** @throws ClaimError `invalid_setting` */
export function readWholeNumber(label: string, value: unknown, least: number, most: number): number {
	const number = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value;
	if (typeof number !== 'number' || !Number.isInteger(number) || number < least || number > most) {
		throw invalidSetting(`${label} must be a whole number from ${least} to ${most}`, `Correct ${label} in the node.`);
	}
	return number;
}

/** @throws ClaimError `invalid_setting` */
export function readChoice<T extends string>(label: string, value: unknown, choices: readonly T[]): T {
	const choice = choices.find((one) => one === value);
	if (choice === undefined) throw invalidSetting(`${label} is not one of ${choices.join(', ')}`, `Correct ${label} in the node.`);
	return choice;
}

/** @throws ClaimError `invalid_setting`: what a failed expression leaves behind is neither yes nor no */
export function readSwitch(label: string, value: unknown): boolean {
	if (typeof value === 'boolean') return value;
	return readChoice(label, value, ['true', 'false']) === 'true';
}

/** The preset that the Provider names; Custom has none. @throws ClaimError `invalid_setting` */
export function readPreset(provider: unknown): ProviderPreset {
	const preset = typeof provider === 'string' ? presetOf(provider) : undefined;
	if (preset === undefined) throw invalidSetting('The Provider is not one that this version knows', 'Choose a provider from the list, or Custom.');
	return preset;
}

/** Longest lease: 31 days, in seconds. */
export const MAX_LEASE_SECONDS = 31 * 24 * 60 * 60;

/** Names that n8n's engine reads as an error of the item, or that are not plain fields. */
const RESERVED_FIELDS = new Set(['error', 'message', 'details', '$error', '$json', '__proto__']);

/** The field of the output items that holds the claim. @throws ClaimError `invalid_setting` */
export function readResultField(options: Record<string, unknown>): string {
	const field = options.resultField ?? DEFAULT_RESULT_FIELD;
	if (typeof field !== 'string' || field.trim() === '' || RESERVED_FIELDS.has(field)) {
		throw invalidSetting('The Result Field cannot have this name', 'Choose another name, e.g. claim; n8n reads error, message and details as a failed item.');
	}
	return field;
}

export const DEFAULT_RESULT_FIELD = 'claim';
