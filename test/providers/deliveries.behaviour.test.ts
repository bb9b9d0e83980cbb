import type { IDataObject } from 'n8n-workflow';
import { partsOf, PRESETS, type Place, type ProviderPreset } from '../../providers';
import { anyText, textWith } from '../support/matchers';
import { claimNode, claimsOf, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, Workbench } from '../support/workbench';
import { SAMPLES, type Sample } from './samples';

let workbench: Workbench;
beforeAll(async () => (workbench = await Workbench.open()));
afterEach(async () => await workbench.clear());
afterAll(async () => await workbench.close());

const run = async (provider: string, ...items: IDataObject[]) => await workbench.run(guarded(claimNode({ provider, source: '', deliveryId: '' })), { items: items.map((json) => ({ json })) });

test('every preset has a sample delivery', () => {
	expect(Object.keys(SAMPLES).sort()).toEqual(PRESETS.map(({ slug }) => slug).sort());
});

const cases = PRESETS.map((preset): [string, ProviderPreset, Sample] => [preset.slug, preset, SAMPLES[preset.slug]]);

describe.each(cases)('%s', (slug, preset, sample) => {
	test('a delivery is new, the same one again a duplicate, another event new', async () => {
		const first = claimsOf(await run(slug, sample.delivery), 'Claim', NEW_CLAIM);
		expect(first).toMatchObject([{ source: slug, responseCode: sample.responseCode ?? 200 }]);

		const again = claimsOf(await run(slug, sample.redelivery), 'Claim', KNOWN_DUPLICATE);
		expect(again).toMatchObject([{ reason: 'in_progress', deliveryId: first[0].deliveryId, account: first[0].account, responseCode: sample.responseCode ?? 200 }]);

		const other = claimsOf(await run(slug, sample.anotherEvent), 'Claim', NEW_CLAIM);
		expect(other).toHaveLength(1);
		expect(other[0].deliveryId).not.toBe(first[0].deliveryId);
		expect(await workbench.rows(slug)).toHaveLength(2);
	});

	test('event type and retention are in the row', async () => {
		await run(slug, sample.delivery);
		expect(await workbench.rows(slug)).toMatchObject([{ event_type: sample.eventType, retention_days: sample.retentionDays }]);
	});

	const needed = partsOf(preset).filter(({ mayBeAbsent }) => mayBeAbsent !== true);
	test.each(needed.map(({ at }) => [at.map(nameOf).join(' or '), at]))('without %s: 400, and nothing is claimed', async (_name, places) => {
		const gap = places.reduce(without, structuredClone(sample.delivery));
		const error = { kind: 'missing_delivery_id', message: textWith(preset.displayName), hint: anyText };
		expect(claimsOf(await run(slug, gap), 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ responseCode: 400, deliveryId: null, error }]);
		expect(await workbench.rows()).toEqual([]);
	});

	test('it is remembered for longer than it can come again', () => {
		expect(preset.retentionDays * 24).toBeGreaterThan(preset.comesAgain.hours ?? 0);
	});
});

function nameOf(place: Place): string {
	return 'header' in place ? place.header : place.body.join('.');
}

/** The item with nothing at this place. */
function without(item: IDataObject, place: Place): IDataObject {
	const path = 'header' in place ? ['headers', place.header] : [...('headers' in item ? ['body'] : []), ...place.body];
	const last = path.pop() as string;
	const parent = path.reduce<IDataObject | undefined>((parent, key) => parent?.[key] as IDataObject | undefined, item);
	delete parent?.[last];
	return item;
}
