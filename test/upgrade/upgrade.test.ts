import { READY_TO_RUN, RECONCILE_FIRST, endAs, leaveBehind, receive, recovering, taken, TRIGGER, triggerNode } from '../nodes/ClaimRecoveryTrigger/support/recovering';
import { LEASE_OVER, RETRY_DUE } from '../support/timePassed';
import { claimNode, claimsOf, completeNode, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, RECORDED, Workbench, type Claim } from '../support/workbench';
import { ARCHIVES, PreviousVersion } from './previousVersion';

/**
 * What people have in their table and in waiting executions when they upgrade. `versions/` holds the package as it was packed for each
 * release; Releasing in CONTRIBUTING.md says when one is added.
 */

describe.each(ARCHIVES)('from %s', (archive) => {
	let previous: PreviousVersion;
	/** The nodes of that version, and those of this one; both on the database of the first. */
	let before: Workbench;
	let now: Workbench;

	beforeAll(async () => {
		previous = await PreviousVersion.unpack(archive);
		before = await Workbench.open(previous.nodeTypes);
		now = before.withNodes();
	});
	afterAll(async () => {
		await now?.close();
		await previous?.remove();
	});

	const claimBy = async (workbench: Workbench, id: string, parameters = {}) => {
		const run = await workbench.run(guarded(claimNode(parameters)), { items: deliveries(id) });
		return [NEW_CLAIM, KNOWN_DUPLICATE].flatMap((output) => claimsOf(run, 'Claim', output))[0];
	};
	const inShort = ({ status, reason, state, version, attempt }: Claim) => `${status} ${reason}: ${state}, version ${version}, attempt ${attempt}`;

	test('what it left finished or unfinished is known as what it is', async () => {
		await endAs(before, ['completed'], { outcome: 'completed', outcomeReference: 'lead-1' });
		await endAs(before, ['uncertain'], { outcome: 'outcomeUncertain', reason: 'no answer' });
		await endAs(before, ['review'], { outcome: 'needsReview', reason: 'two found' });
		await endAs(before, ['retry-due'], { outcome: 'retryableFailure' });
		await endAs(before, ['retry-later'], { outcome: 'retryableFailure' });
		await leaveBehind(before, ['running', 'died']);
		await leaveBehind(before, ['taken-over'], { options: { whenLeaseExpires: 'takeOver' } });
		await receive(before, ['stored']);
		await before.change('retry-due', RETRY_DUE);
		for (const id of ['died', 'taken-over']) await before.change(id, LEASE_OVER);

		const found: Record<string, string> = {};
		for (const id of ['completed', 'uncertain', 'review', 'retry-due', 'retry-later', 'running', 'died', 'taken-over', 'stored']) found[id] = inShort(await claimBy(now, id));
		expect(found).toEqual({
			completed: 'duplicate completed: completed, version 1, attempt 1',
			uncertain: 'duplicate outcome_uncertain: outcome_uncertain, version 1, attempt 1',
			review: 'duplicate needs_review: needs_review, version 1, attempt 1',
			'retry-due': 'new retry: processing, version 2, attempt 2',
			'retry-later': 'duplicate retry_pending: retryable_failure, version 1, attempt 1',
			running: 'duplicate in_progress: processing, version 1, attempt 1',
			died: 'duplicate outcome_uncertain: outcome_uncertain, version 1, attempt 1',
			'taken-over': 'new lease_expired: processing, version 2, attempt 2',
			stored: 'new received: processing, version 2, attempt 1',
		});
		expect((await claimBy(now, 'completed')).outcome).toMatchObject({ reference: 'lead-1' });
	});

	test('an execution that was waiting meanwhile records its outcome, and the key for the destination is the same', async () => {
		const claim = await claimBy(before, 'waiting');
		expect((await claimBy(now, 'waiting')).idempotencyKey).toBe(claim.idempotencyKey);
		const workflow = guarded(completeNode({ claimFrom: 'handle', handle: '={{ $json.claim.handle }}', outcomeReference: 'lead-2' }));
		const run = await now.run(workflow, { items: [{ json: { claim: { ...claim } } }] });
		expect(claimsOf(run, 'Claim', RECORDED)).toMatchObject([{ state: 'completed', outcome: { reference: 'lead-2' } }]);
		expect(await claimBy(before, 'waiting')).toMatchObject({ status: 'duplicate', state: 'completed', outcome: { reference: 'lead-2' } });
	});

	test('recovery takes what it left, with its payload', async () => {
		const source = { source: 'recovered' };
		await receive(before, ['inbox'], source);
		await endAs(before, ['lost'], { outcome: 'outcomeUncertain', reason: 'no answer' }, source);
		const publication = await now.publish(recovering(triggerNode(source)));
		try {
			const executions = await publication.executions();
			expect(taken(executions, READY_TO_RUN)).toMatchObject([{ deliveryId: 'inbox', reason: 'received', attempt: 1 }]);
			expect(taken(executions, RECONCILE_FIRST)).toMatchObject([{ deliveryId: 'lost', reason: 'outcome_uncertain' }]);
			expect(executions.flatMap((execution) => execution.allOutputOf(TRIGGER, READY_TO_RUN)).map(({ id }) => id)).toEqual(['inbox']);
		} finally {
			await publication.unpublish();
		}
	});

	test('a process that is still the old one goes on working beside the new one', async () => {
		expect(inShort(await claimBy(now, 'of-the-new'))).toBe('new first_delivery: processing, version 1, attempt 1');
		expect(inShort(await claimBy(before, 'of-the-new'))).toBe('duplicate in_progress: processing, version 1, attempt 1');
		expect(inShort(await claimBy(before, 'of-the-old'))).toBe('new first_delivery: processing, version 1, attempt 1');
		await endAs(before, ['done-by-the-old'], { outcome: 'completed' });
		expect(inShort(await claimBy(now, 'done-by-the-old'))).toBe('duplicate completed: completed, version 1, attempt 1');
	});
});

test('there is a version to upgrade from', () => {
	expect(ARCHIVES.length).toBeGreaterThan(0);
});
