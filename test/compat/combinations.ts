/** One n8n on one major version of Node.js. */
export interface Combination {
	n8n: string;
	node: number;
}

/** What is measured unless `npm run compat` is told otherwise. */
export const COMBINATIONS: Combination[] = [
	{ n8n: '1.123.81', node: 22 },
	{ n8n: '2.0.3', node: 22 },
	{ n8n: '2.41.1', node: 24 },
];

/** `1.123.81@20`: as it is given on the command line. */
export function readCombination(text: string): Combination {
	const [, n8n, node] = /^(\d+\.\d+\.\d+)@(\d+)$/.exec(text) ?? [];
	if (!n8n) throw new Error(`"${text}" is no combination: give the version of n8n and the major version of Node.js, as in 2.0.3@22`);
	return { n8n, node: Number(node) };
}
