import { readFileSync } from 'node:fs';
import path from 'node:path';
import { daysInWords, noticesOf, partsOf, PRESETS, sourceInWords, type Place, type ProviderPreset } from '../../providers';

/** The tables of docs/providers.md say what the presets say. When they do not, the failure shows the lines to put there. */

const document = readFileSync(path.join(__dirname, '../../docs/providers.md'), 'utf8');

/** The rows of the table that begins with this column heading. */
function rowsUnder(heading: string): string[] {
	const lines = document.slice(document.indexOf(heading)).split('\n');
	return lines.slice(2, lines.findIndex((line) => !line.startsWith('|')));
}

test('which fields are read, and how long a delivery comes again', () => {
	expect(rowsUnder('| provider | delivery ID |')).toEqual(
		PRESETS.map((preset) =>
			row(`${preset.displayName}, \`${preset.slug}\``, deliveryId(preset), anyOf(preset.account), anyOf(preset.eventType), preset.comesAgain.words, daysInWords(preset.retentionDays)),
		),
	);
});

test('what to know first, and where the facts are from', () => {
	expect(rowsUnder('| provider | same ID on a retry |')).toEqual(
		PRESETS.map((preset) => row(preset.displayName, preset.stability === 'documented' ? 'documented' : '**not documented**', whatToKnow(preset), source(preset))),
	);
});

function row(...cells: string[]): string {
	return `| ${cells.map((cell) => cell || '–').join(' | ')} |`;
}

function deliveryId(preset: ProviderPreset): string {
	return partsOf(preset)
		.map(({ at, mayBeAbsent }) => `${anyOf(at)}${mayBeAbsent ? ' (?)' : ''}`)
		.join(' + ');
}

function anyOf(places: readonly Place[]): string {
	return places.map(nameOf).join(' or ');
}

function nameOf(place: Place): string {
	if ('header' in place) return `header \`${place.header}\``;
	return `${place.as === 'host' ? 'host name in ' : ''}\`${place.body.join('.')}\``;
}

/** Without what the column before says already. */
function whatToKnow(preset: ProviderPreset): string {
	return noticesOf({ ...preset, stability: 'documented' }).join(' ');
}

function source({ source }: ProviderPreset): string {
	const checked = source.checked ? `; found again on ${source.checked.on}: ${source.checked.what}` : '';
	return `[${sourceInWords(source)}](${source.url})${checked}`;
}
