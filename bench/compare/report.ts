import { countBy } from '../../test/support/counting';
import { number, spread, table, times } from '../markdown';
import { median, percentile, perSecond, ratios } from '../rounds';
import { atMost, type Goal } from '../section';
import type { GuardName } from './guards';
import type { Load, Observation } from './load';
import type { Subject } from './place';

/** What each guard was seen to do, round by round. */
export type Observations = ReadonlyMap<GuardName, readonly Observation[]>;

/** The results as Markdown, one block after the other. */
export function report(subjects: readonly Subject[], observations: Observations, { copied, copies, paced, atOnce, again }: Load): string[] {
	const rounds = seenOf(observations, 'claim').length;
	const goals = [latencyGoal(observations)];
	return [
		`In each of ${rounds} rounds every guard got ${copied} deliveries as ${copies} simultaneous copies each, then ${paced} deliveries without copies, ${atOnce} of them at any moment, of which ${again} came once more when all had been answered. ` +
			'The guards took turns, each round in another order; a round before the first does not count.',
		[
			`- *Actions per delivery*: what the destination stored of a delivery that came as ${copies} copies: the median, and in brackets the least and the most. Expected is 1.`,
			'- *Acted upon again*: deliveries without copies whose second coming, when the first had long been answered, was acted upon.',
			'- *Senders were told*: the answers to all the copies.',
			'- *p50*, *p95*: milliseconds from a delivery without copies to its answer, which comes when the action is done, over all rounds.',
			'- *Deliveries/s*: of those without copies, the median over the rounds, and in brackets the slowest and the fastest.',
		].join('\n'),
		table(
			['guard', 'actions per delivery', 'acted upon again', 'senders were told', 'p50 (ms)', 'p95 (ms)', 'deliveries/s'],
			subjects.map(({ name, title }) => [title, ...rowOf(seenOf(observations, name), paced)]),
		),
		...troubles(subjects, observations),
		`Median latency of Idempotent Claim alone as a multiple of the Postgres node's in the same round: ${spread(latencyRatios(observations), times)}.`,
		'## Goals',
		table(['goal', 'asked', 'measured', ''], goals.map(({ what, asked, measured, held }) => [what, asked, measured, held ? 'held' : 'missed'])),
	];
}

function seenOf(observations: Observations, name: GuardName): readonly Observation[] {
	return observations.get(name) ?? [];
}

function rowOf(seen: readonly Observation[], paced: number): string[] {
	const actions = seen.flatMap(({ copied }) => copied);
	const again = seen.flatMap((one) => one.again.map((count, place) => count > one.paced[place]));
	const latencies = seen.flatMap((one) => one.latencies);
	return [
		actions.every((count) => count === actions[0]) ? number(actions[0]) : spread(actions),
		`${number(again.filter(Boolean).length)} of ${number(again.length)}`,
		toldInWords(seen.flatMap(({ told }) => told)),
		number(percentile(latencies, 50)),
		number(percentile(latencies, 95)),
		spread(seen.map(({ time }) => perSecond(paced, time))),
	];
}

/** "200", or "200 (1,890), 500 (10)". */
function toldInWords(told: string[]): string {
	const counts = Object.entries(countBy(told));
	if (counts.length === 1) return counts[0][0];
	return counts.map(([answer, count]) => `${answer} (${number(count)})`).join(', ');
}

/** Deliveries without copies that were not simply acted upon and answered with 200: their latencies mean something else. */
function troubles(subjects: readonly Subject[], observations: Observations): string[] {
	return subjects.flatMap(({ name, title }) => {
		const seen = seenOf(observations, name);
		const told = seen.flatMap(({ pacedTold }) => pacedTold);
		const paced = seen.flatMap((one) => one.paced);
		if (told.every((answer) => answer === '200') && paced.every((count) => count === 1)) return [];
		const lost = paced.filter((count) => count === 0).length;
		return [`**${title}**: of ${number(paced.length)} deliveries without copies ${number(lost)} were not acted upon; their senders were told ${toldInWords(told)}.`];
	});
}

function latencyRatios(observations: Observations): number[] {
	const medians = (name: GuardName) => seenOf(observations, name).map(({ latencies }) => median(latencies));
	return ratios(medians('claimOnly'), medians('postgres'));
}

function latencyGoal(observations: Observations): Goal {
	return atMost("Idempotent Claim alone: median latency, against the Postgres node's, which does the same job", 1, latencyRatios(observations));
}

/** What Idempotent Claim let through too often, or not at all. */
export function faultsOf(title: string, { copied, paced, again }: Observation): string[] {
	const wrong = [...copied, ...paced, ...again].filter((count) => count !== 1);
	return wrong.length === 0 ? [] : [`${title}: ${wrong.length} deliveries were acted upon ${[...new Set(wrong)].join(' or ')} times instead of once`];
}
