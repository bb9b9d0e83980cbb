/** Says what a long piece of work is doing at this moment. */
export type Tell = (detail: string) => void;

export interface Progress {
	/** Runs one stage, with its number, its latest detail and its time shown. */
	stage<Result>(title: string, work: (tell: Tell) => Promise<Result>): Promise<Result>;
}

/** Without a terminal (CI, output to a file) a line every so often, instead of one that is rewritten. */
const SECONDS_BETWEEN_LINES = 15;

/** Progress on standard output. */
export function createProgress(totalStages: number): Progress {
	const terminal = process.stdout.isTTY;
	let number = 0;

	return {
		async stage(title, work) {
			const head = `[${++number}/${totalStages}] ${title}`;
			const begun = Date.now();
			const elapsed = () => `${Math.round((Date.now() - begun) / 1000)} s`;
			let detail = '';
			const show = () => {
				const line = `${head} … ${detail ? `${detail}, ` : ''}${elapsed()}`;
				if (terminal) process.stdout.write(`\r\x1b[2K${line.slice(0, process.stdout.columns - 1)}`);
				else console.log(line);
			};
			show();
			const timer = setInterval(show, terminal ? 500 : SECONDS_BETWEEN_LINES * 1000);
			const finish = (ending: string) => {
				clearInterval(timer);
				console.log(`${terminal ? '\r\x1b[2K' : ''}${head}: ${ending} (${elapsed()})`);
			};
			try {
				const result = await work((text) => {
					detail = text;
				});
				finish(detail || 'done');
				return result;
			} catch (error) {
				finish('failed');
				throw error;
			}
		},
	};
}

/** For programs that start a sandbox and say nothing about it. */
export const silentProgress: Progress = {
	stage: async (_title, work) => await work(() => {}),
};
