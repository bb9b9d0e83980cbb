import type { GuardName } from '../../bench/compare/guards';
import type { Observation } from '../../bench/compare/load';
import type { Subject } from '../../bench/compare/place';
import { faultsOf, report } from '../../bench/compare/report';

/** What `npm run compare` makes of what it saw. The comparison itself is too long for a test: it starts a real n8n. */

const LOAD = { copied: 2, copies: 20, paced: 3, atOnce: 8, again: 2 };
const GOOD: Observation = { copied: [1, 1], told: Array<string>(40).fill('200'), latencies: [10, 20, 30], time: 60, pacedTold: ['200', '200', '200'], paced: [1, 1, 1], again: [1, 1] };

const subject = (name: GuardName) => ({ name, title: `the guard ${name}` }) as Subject;
const rowOf = (blocks: string[], title: string) => blocks.join('\n').split('\n').find((line) => line.startsWith(`| ${title} `))?.slice(2, -2).split(' | ');

test('one action for each delivery is no fault; two, or none, are, wherever they are seen', () => {
	expect(faultsOf('Guard', GOOD)).toEqual([]);
	for (const wrong of [{ copied: [1, 2] }, { paced: [1, 0, 1] }, { again: [2, 1] }]) expect(faultsOf('Guard', { ...GOOD, ...wrong })).toEqual([expect.stringContaining('1 deliveries')]);
	expect(faultsOf('Guard', { ...GOOD, copied: [0, 20] })).toEqual([expect.stringContaining('0 or 20 times')]);
});

test('a guard\'s row says how often it acted, also on what came again, and every answer that senders got', () => {
	const leaky: Observation = { ...GOOD, copied: [3, 20], told: [...Array<string>(39).fill('200'), '500'], again: [1, 2] };
	const blocks = report([subject('none'), subject('claim')], new Map([['none', [leaky, leaky]], ['claim', [GOOD, GOOD]], ['claimOnly', [GOOD]], ['postgres', [GOOD]]] as const), LOAD);
	expect(rowOf(blocks, 'the guard none')).toEqual(['the guard none', '11.5 (3 to 20)', '2 of 4', '200 (78), 500 (2)', '20', '30', '50 (50 to 50)']);
	expect(rowOf(blocks, 'the guard claim')).toEqual(['the guard claim', '1', '0 of 4', '200', '20', '30', '50 (50 to 50)']);
	expect(blocks.join('\n')).not.toContain('were not acted upon');
});

test('deliveries that nobody acted upon are named, and the goal is the median of the ratios round by round', () => {
	const lossy: Observation = { ...GOOD, paced: [1, 0, 1], pacedTold: ['200', '500', '200'] };
	const ours = [20, 30, 40].map((latency) => ({ ...GOOD, latencies: [latency] }));
	const theirs = [40, 20, 20].map((latency) => ({ ...GOOD, latencies: [latency] }));
	const blocks = report([subject('removeDuplicates')], new Map([['removeDuplicates', [lossy]], ['claim', ours], ['claimOnly', ours], ['postgres', theirs]] as const), LOAD);
	expect(blocks.join('\n')).toContain('**the guard removeDuplicates**: of 3 deliveries without copies 1 were not acted upon; their senders were told 200 (2), 500 (1).');
	expect(blocks[blocks.length - 1]).toContain('| ≤ 1.00 × | 1.50 × | missed |');
});
