import { setImmediate as nextTurn } from 'node:timers/promises';
import { createContext, Script, type Context } from 'node:vm';

/** One text that should match one pattern. */
export interface PatternTest {
	readonly pattern: RegExp;
	readonly text: string;
}

export type PatternVerdict = 'matches' | 'differs' | 'too slow';

/** Longest time that one text may take, in milliseconds: nothing else happens in the process meanwhile. */
const MAX_MS = 50;
/** The time is the clock's: on a busy machine a process may be left waiting as long, but hardly at the same text again. */
const TRIES = 2;
/** After as many slow texts in one call, whatever was not looked at yet counts as slow: the pattern is at fault. */
const MAX_SLOW = 10;

interface Work {
	tests: readonly PatternTest[];
	next: number;
	verdicts: PatternVerdict[];
}

/** Outside the module's own code, because only a script that runs apart can be stopped in the middle of a match. */
const MATCH_ON = new Script(`
	for (; work.next < work.tests.length; work.next++) {
		const { pattern, text } = work.tests[work.next];
		work.verdicts[work.next] = pattern.test(text) ? 'matches' : 'differs';
	}
`);
let context: (Context & { work?: Work }) | undefined;

/**
 * Matches texts that strangers wrote. A pattern such as ^(a+)+$ can take years for one of them, and JavaScript would
 * not do anything else until then; so each has a bounded time. All texts share one script, since starting one that
 * can be stopped costs about as much as a thousand matches.
 */
export async function matchEach(tests: readonly PatternTest[]): Promise<PatternVerdict[]> {
	const work: Work = { tests, next: 0, verdicts: [] };
	for (let slow = 0, tries = 0; work.next < tests.length && slow < MAX_SLOW; ) {
		const begunAt = work.next;
		if (ranToTheEnd(work)) break;
		// The time is up for all that ran together; it was this one's alone where nothing came before it.
		tries = work.next === begunAt ? tries + 1 : 0;
		if (tries === TRIES) {
			tries = 0;
			slow++;
			work.verdicts[work.next++] = 'too slow';
		}
		await nextTurn();
	}
	return tests.map((_, index) => work.verdicts[index] ?? 'too slow');
}

function ranToTheEnd(work: Work): boolean {
	context ??= createContext({});
	context.work = work;
	try {
		MATCH_ON.runInContext(context, { timeout: MAX_MS });
		return true;
	} catch (failure) {
		if ((failure as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return false;
		throw failure;
	} finally {
		context.work = undefined;
	}
}
