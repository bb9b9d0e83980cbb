/**
 * Gathers what many executions want at the same moment: while some statements are under way, the others wait, and go
 * together in the next one, as a database gathers commits. A caller that is alone never waits.
 */
export class Gathering<Call, Answer> {
	private waiting: Array<Waiting<Call, Answer>> = [];
	private underWay = 0;

	/** @param answerAll answers calls in their order, and puts each answer into the map as soon as it is known; never throws */
	constructor(private readonly answerAll: (calls: readonly Call[], answers?: Map<Call, Answer>) => Promise<Answer[]>) {}

	/** What is several calls already goes by itself. Never throws, as little as `answerAll`. */
	async answer(calls: readonly Call[]): Promise<Answer[]> {
		if (calls.length !== 1) return await this.answerAll(calls);
		const answer = new Promise<Answer>((resolve) => this.waiting.push({ call: calls[0], resolve }));
		if (this.underWay < AT_ONCE) void this.next();
		return [await answer];
	}

	private async next(): Promise<void> {
		const group = this.waiting.splice(0, MOST_TOGETHER);
		if (group.length === 0) return;
		this.underWay++;
		const makeRoom = once(() => {
			this.underWay--;
			void this.next();
		});
		const late = setTimeout(makeRoom, LATE_MS);
		const answers = await this.answerAll(group.map(({ call }) => call), new Told(group));
		clearTimeout(late);
		makeRoom();
		group.forEach(({ resolve }, place) => resolve(answers[place]));
	}
}

interface Waiting<Call, Answer> {
	call: Call;
	resolve: (answer: Answer) => void;
}

/** Tells each caller its answer at once: one that waits for a lock does not keep the others. */
class Told<Call, Answer> extends Map<Call, Answer> {
	private readonly callers: Map<Call, (answer: Answer) => void>;

	constructor(group: ReadonlyArray<Waiting<Call, Answer>>) {
		super();
		this.callers = new Map(group.map(({ call, resolve }) => [call, resolve]));
	}

	override set(call: Call, answer: Answer): this {
		this.callers.get(call)?.(answer);
		return super.set(call, answer);
	}
}

/** Groups under way: one may commit while the next is sent. */
const AT_ONCE = 2;
/** Calls in one group, as in a portion of a batch. */
const MOST_TOGETHER = 500;
/** Milliseconds. What takes longer waits for a lock, or for a line that is silent: nobody else is to wait for that. */
const LATE_MS = 100;

function once(action: () => void): () => void {
	let done = false;
	return () => {
		if (!done) action();
		done = true;
	};
}
