import type { ServerAddress } from '../test/support/database';
import { times } from './markdown';
import { median } from './rounds';

/** What a section gets to work with. */
export interface Bench {
	readonly server: ServerAddress;
	/** For files that other programs read; gone when the run ends. */
	readonly folder: string;
	/** Few rounds of little work: shows that everything runs. Its numbers say nothing. */
	readonly quick: boolean;
	/** How many rows the tables of the section `size` have, where it was said. */
	readonly tableSizes: readonly number[] | undefined;
	/** Aborted when the run is to end early; ends other programs. */
	readonly cancelSignal: AbortSignal;
	/** Says what is being measured; not part of the results. */
	tell(line: string): void;
}

/** What was asked for, and what was measured. */
export interface Goal {
	readonly what: string;
	readonly asked: string;
	readonly measured: string;
	readonly held: boolean;
}

export interface Findings {
	/** Markdown, one block after the other. */
	readonly blocks: readonly string[];
	readonly goals: readonly Goal[];
}

/** One question, which can be measured alone. */
export interface Section {
	/** As it is named on the command line. */
	readonly name: string;
	readonly title: string;
	/** @throws Error when an answer is wrong; being slow is none */
	measure(bench: Bench): Promise<Findings>;
}

/** A goal for the median of ratios: so many times, or more. */
export function atLeast(what: string, least: number, measured: readonly number[]): Goal {
	const middle = median(measured);
	return { what, asked: `≥ ${times(least)} ×`, measured: `${times(middle)} ×`, held: middle >= least };
}

/** A goal for the median: so much, or less. */
export function atMost(what: string, most: number, measured: readonly number[], unit = '×'): Goal {
	const middle = median(measured);
	return { what, asked: `≤ ${times(most)} ${unit}`, measured: `${times(middle)} ${unit}`, held: middle <= most };
}
