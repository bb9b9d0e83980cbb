import { setTimeout as sleep } from 'node:timers/promises';

const MILLISECONDS_BETWEEN_LOOKS = 150;

/** Resolves as soon as the condition holds. @throws Error that names the condition when it does not come true in time. */
export async function until(condition: string, seconds: number, holds: () => Promise<boolean>): Promise<void> {
	const deadline = Date.now() + seconds * 1000;
	while (!(await holds())) {
		if (Date.now() > deadline) throw new Error(`Waited ${seconds} s in vain until ${condition}`);
		await sleep(MILLISECONDS_BETWEEN_LOOKS);
	}
}
