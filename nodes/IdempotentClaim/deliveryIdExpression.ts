import type { IExecuteFunctions } from 'n8n-workflow';
import { ClaimError, invalidSetting } from '../../store/errors';
import { rawParameter } from '../shared/parameters';

/** What the expression of a delivery ID shows and its value alone does not. */

/** What is different at every execution is no identity: each redelivery would be new. */
const CHANGES_EVERY_TIME =
	/\$(?:execution|executionId|now|today|runIndex|itemIndex|thisRunIndex|thisItemIndex|resumeWebhookUrl)\b|\bDate\.now\b|\bnew Date\(\s*\)|\bDateTime\.(?:now|local|utc)\(\s*\)|\bMath\.random\b|\brandomUUID\b/;
const QUOTED_TEXT = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/g;

/** @throws ClaimError `invalid_setting` */
export function refuseChangingIds(context: IExecuteFunctions, parameter: string, itemIndex: number): void {
	const raw = rawParameter(context, parameter, itemIndex);
	const found = raw.startsWith('=') ? CHANGES_EVERY_TIME.exec(raw.replace(QUOTED_TEXT, '')) : null;
	if (found === null) return;
	throw invalidSetting(`The Delivery ID is made from ${found[0]}, which is different at every execution: no delivery would ever be a duplicate`, 'Use the identifier that the sender repeats when it delivers again.');
}

const PART_OF_TEMPLATE = /\{\{([\s\S]*?)\}\}/g;
/** A failed part of a text that was put together, between anything but letters and digits. */
const LEFTOVER_PART = /(?<![\p{L}\p{N}])(?:undefined|null|NaN|\[object Object\])(?![\p{L}\p{N}])/u;
const PUTS_TOGETHER = /[+`]|\.(?:join|concat)\(/;

/**
 * An ID that is put together of several parts needs each of them: with one missing, n8n leaves an empty text or the
 * word "undefined" in its place, and all deliveries that lack it would be one.
 *
 * @throws ClaimError `missing_delivery_id`
 */
export function refuseMissingParts(context: IExecuteFunctions, parameter: string, itemIndex: number, deliveryId: unknown): void {
	const raw = rawParameter(context, parameter, itemIndex);
	if (!raw.startsWith('=') || typeof deliveryId !== 'string') return;
	const template = raw.slice(1);
	const parts = [...template.matchAll(PART_OF_TEMPLATE)].map(([, expression]) => expression);
	const fixedText = template.replace(PART_OF_TEMPLATE, '');
	if (parts.length > 1 || (parts.length === 1 && fixedText.trim() !== '')) {
		for (const part of parts) {
			const missing = whatIsMissing(valueOf(context, part, itemIndex));
			if (missing !== undefined) throw missingPart(`{{${part}}} is ${missing}`);
		}
	}
	if (!PUTS_TOGETHER.test(parts.join('\n').replace(QUOTED_TEXT, ''))) return;
	const leftover = LEFTOVER_PART.exec(deliveryId);
	if (leftover !== null) throw missingPart(`one of them is the text "${leftover[0]}", which a failed expression leaves behind`);
	if (deliveryId !== '' && !/[\p{L}\p{N}]/u.test(deliveryId)) throw missingPart('there is neither a letter nor a digit in it');
}

/** @throws ClaimError `invalid_setting` */
function valueOf(context: IExecuteFunctions, expression: string, itemIndex: number): unknown {
	try {
		return context.evaluateExpression(`{{${expression}}}`, itemIndex);
	} catch {
		throw invalidSetting('The expression of the Delivery ID failed for this item', 'Open the node and look at the Delivery ID: the editor shows what is wrong with the expression.');
	}
}

function whatIsMissing(value: unknown): string | undefined {
	if (value === undefined || value === null || Number.isNaN(value)) return String(value);
	if (typeof value === 'object') return 'not a text';
	return typeof value === 'string' && value.trim() === '' ? 'empty' : undefined;
}

function missingPart(what: string): ClaimError {
	return new ClaimError('missing_delivery_id', `A part of the delivery ID is missing: ${what}`, {
		hint: 'Each part must be there for every delivery. Where one stands in for another, choose between them inside one expression, e.g. {{ $json.a ?? $json.b }}.',
	});
}
