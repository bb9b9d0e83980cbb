import type { Interception, Proxy } from '../../support/proxy';

/** Where a line can break at one statement; it is mended at once. */
export const BREAKS: Record<string, (proxy: Proxy, statement: string) => Interception> = {
	'cut before it arrives': (proxy, statement) => proxy.cutBefore(statement),
	'cut after it was carried out, before its answer': (proxy, statement) => proxy.loseAnswerTo(statement),
	'cut in the middle of its answer': (proxy, statement) => proxy.cutInsideAnswerTo(statement),
	'no answer, and the line stays open': (proxy, statement) => proxy.swallowAnswerTo(statement),
};

/** The same for a line that stays broken until the test mends it. */
export interface LastingBreak {
	breakAt: (proxy: Proxy, statement: string) => Interception;
	/** Whether PostgreSQL carries the statement out, sooner or later. */
	carriedOut: boolean;
}

export const LASTING_BREAKS: Record<string, LastingBreak> = {
	'cut before it arrives, and nothing listens any more': { breakAt: (proxy, statement) => thenRefuse(proxy, proxy.cutBefore(statement)), carriedOut: false },
	'cut before its answer, and nothing listens any more': { breakAt: (proxy, statement) => thenRefuse(proxy, proxy.loseAnswerTo(statement)), carriedOut: true },
	'cut in the middle of its answer, and nothing listens any more': { breakAt: (proxy, statement) => thenRefuse(proxy, proxy.cutInsideAnswerTo(statement)), carriedOut: true },
	'no answer to it, nor to anything after it': { breakAt: (proxy, statement) => ({ happened: proxy.swallowAnswerTo(statement).happened.then(() => proxy.goSilent()) }), carriedOut: true },
	'kept by the network, and delivered when it is given up already': { breakAt: (proxy, statement) => proxy.goSilentAt(statement), carriedOut: true },
};

function thenRefuse(proxy: Proxy, broken: Interception): Interception {
	return { happened: broken.happened.then(async () => await proxy.refuse()) };
}
