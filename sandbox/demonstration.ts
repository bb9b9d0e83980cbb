import type { Progress } from './progress';
import type { Sandbox } from './sandbox';
import { answerLost } from './scenarios/answerLost';
import { changedDetails } from './scenarios/changedDetails';
import { destinationFails } from './scenarios/destinationFails';
import { fiftyCopies } from './scenarios/fiftyCopies';
import { malformedId } from './scenarios/malformedId';
import { missingId } from './scenarios/missingId';
import { n8nKilled } from './scenarios/n8nKilled';
import { replayAfterRetention } from './scenarios/replayAfterRetention';
import { Row, type Scenario, type Step } from './scenarios/row';
import { sameDeliveryTwice } from './scenarios/sameDeliveryTwice';
import { sameEmail } from './scenarios/sameEmail';
import { storeDown } from './scenarios/storeDown';

const SCENARIOS: Scenario[] = [
	sameDeliveryTwice,
	changedDetails,
	fiftyCopies,
	missingId,
	malformedId,
	storeDown,
	destinationFails,
	n8nKilled,
	answerLost,
	sameEmail,
	replayAfterRetention,
];

export interface DemonstratedRow {
	title: string;
	note?: string;
	steps: Step[];
	/** Why the scenario could not be carried out to its end. */
	failure?: string;
	held: boolean;
}

/** Carries out every scenario, one after the other, against a running sandbox. */
export async function demonstrate(sandbox: Sandbox, progress: Progress, cancelSignal?: AbortSignal): Promise<DemonstratedRow[]> {
	return await progress.stage('The demonstration', async (tell) => {
		const rows: DemonstratedRow[] = [];
		for (const [index, scenario] of SCENARIOS.entries()) {
			cancelSignal?.throwIfAborted();
			tell(`${index + 1} of ${SCENARIOS.length}: ${scenario.title}`);
			rows.push(await carryOut(sandbox, scenario));
		}
		tell(`${rows.filter(({ held }) => held).length} of ${rows.length} rows held`);
		return rows;
	});
}

async function carryOut(sandbox: Sandbox, scenario: Scenario): Promise<DemonstratedRow> {
	const row = await Row.begin(sandbox);
	const carriedOut = { title: scenario.title, note: scenario.note, steps: row.steps };
	try {
		await scenario.run(row);
		return { ...carriedOut, held: row.steps.every(({ held }) => held) };
	} catch (error) {
		return { ...carriedOut, failure: (error as Error).message, held: false };
	} finally {
		// Whatever a scenario broke is whole again for the next one.
		await sandbox.storeLine.mend();
		await sandbox.destination.behave('work');
		await sandbox.restartN8n();
	}
}
