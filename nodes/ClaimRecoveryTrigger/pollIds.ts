import { randomUUID } from 'node:crypto';

/**
 * Polls whose answer was lost. What such a poll took is under its lease, and nobody works on it: the next poll of the
 * same node asks with the same ID, and the store then gives those claims instead of others. Only in this process:
 * after a restart they come back when their lease ends.
 */
const unanswered = new Map<string, { pollId: string; until: number }>();

/** The ID for one more poll. Whoever gets an ID is its only user. */
export function nextPollId(poll: string): string {
	const before = unanswered.get(poll);
	unanswered.delete(poll);
	return before !== undefined && Date.now() < before.until ? before.pollId : randomUUID();
}

/** Half of the lease, so that what is handed on late still has time to be worked on. */
export function keepPollId(poll: string, pollId: string, leaseSeconds: number): void {
	unanswered.set(poll, { pollId, until: Date.now() + leaseSeconds * 500 });
}
