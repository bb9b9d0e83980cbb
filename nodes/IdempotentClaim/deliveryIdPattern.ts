import { ClaimError, invalidSetting } from '../../store/errors';
import { matchEach } from '../../store/pattern';
import type { ItemReading } from './readClaimRequest';

/** @throws ClaimError `invalid_setting` */
export function readPattern(pattern: unknown): RegExp | undefined {
	if (pattern === undefined || pattern === '') return undefined;
	if (typeof pattern === 'string') {
		try {
			return new RegExp(pattern, 'u');
		} catch {
			// Falls through to the one message for all that is no pattern.
		}
	}
	throw invalidSetting('The Delivery ID Pattern is not a regular expression', 'Write it without slashes, e.g. ^evt_[A-Za-z0-9]+$');
}

/** Turns the readings whose delivery ID does not match its pattern into errors. */
export async function refuseUnmatched(readings: readonly ItemReading[]): Promise<void> {
	const tests = readings.flatMap((reading) => (reading.request && reading.pattern ? { reading, pattern: reading.pattern, text: reading.request.identity.deliveryId } : []));
	const verdicts = await matchEach(tests);
	tests.forEach(({ reading, pattern }, index) => {
		const verdict = verdicts[index];
		if (verdict === 'matches') return;
		const { deliveryId: _refused, ...identity } = reading.identity;
		reading.identity = identity;
		reading.request = null;
		reading.error = verdict === 'differs' ? unmatched(pattern) : tooSlow();
	});
}

function unmatched(pattern: RegExp): ClaimError {
	return new ClaimError('invalid_delivery_id', 'The delivery ID does not match the Delivery ID Pattern', {
		hint: `Check which field the delivery ID is read from. The pattern is ${String(pattern)}.`,
	});
}

/** The setting's fault, not the delivery's: with 503 instead of 400 the sender keeps it until the pattern is mended. */
function tooSlow(): ClaimError {
	return invalidSetting('The Delivery ID Pattern takes too long for this delivery ID', 'Avoid nested repetition such as (a+)+ in the pattern; most IDs need one character class and one length, e.g. ^[A-Za-z0-9_-]{1,64}$');
}
