import type { DemonstratedRow } from './demonstration';
import type { Answer, Observation } from './scenarios/row';

const HEADINGS = ['', 'The sender got', 'Calls', 'Leads', 'Record', ''];

/** The demonstration as a table: a line for each row, and one for each of its steps. */
export function printDemonstration(rows: DemonstratedRow[]): void {
	const table = [HEADINGS];
	for (const [index, { title, note, steps, failure, held }] of rows.entries()) {
		table.push([`${index + 1}. ${title}`, '', '', '', '', held ? 'held' : 'NOT HELD']);
		for (const step of steps) {
			table.push([`   ${step.when}`, ...describe(step.observed), '']);
			if (step.observed.history) table.push([`      story: ${step.observed.history.join(' → ')}`, '', '', '', '', '']);
			if (step.held) continue;
			table.push(['   expected instead', ...describe(step.expected), '']);
			if (step.expected.history) table.push([`      story: ${step.expected.history.join(' → ')}`, '', '', '', '', '']);
		}
		if (note) table.push([`   (${note})`, '', '', '', '', '']);
		if (failure) table.push([`   failed: ${failure}`, '', '', '', '', '']);
	}
	// Titles may run on over the empty cells beside them.
	const widths = HEADINGS.map((_, column) => Math.max(...table.filter((line) => column > 0 || line[1]).map((line) => line[column].length)));
	const verdictAt = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0);
	console.log('\nCalls: requests that reached the destination. Leads: what it stores now. Record: what the claim store says. Story: the states that its history tells.\n');
	for (const line of table) {
		const isStep = line === HEADINGS || line[1] !== '';
		console.log(isStep ? line.map((cell, column) => cell.padEnd(widths[column])).join('  ').trimEnd() : `${line[0].padEnd(verdictAt)}${line[5]}`.trimEnd());
	}
	const heldRows = rows.filter(({ held }) => held).length;
	console.log(`\n${heldRows} of ${rows.length} rows held.`);
	if (heldRows < rows.length) console.log('Was the example workflow edited in n8n? `npm start -- --reset` begins anew, with the example as it is in examples/.');
}

function describe({ answers, calls, leads, record }: Observation): string[] {
	return [countAnswers(answers), String(calls), String(leads), record];
}

/** "200", "200 (50 times)", "200 (49 times), 503"; "-" where nothing was sent. */
function countAnswers(answers: Answer[]): string {
	if (answers.length === 0) return '-';
	return [...new Set(answers)]
		.map((answer) => {
			const times = answers.filter((other) => other === answer).length;
			return times > 1 ? `${answer} (${times} times)` : String(answer);
		})
		.join(', ');
}
