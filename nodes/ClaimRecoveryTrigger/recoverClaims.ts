import type { INodeExecutionData, IPollFunctions } from 'n8n-workflow';
import type { ClaimStore } from '../../store/claimStore';
import { asClaimError, ClaimError } from '../../store/errors';
import type { Owner } from '../../store/record';
import type { OutcomeRequest } from '../../store/statements/recordOutcomes';
import type { RecoveredClaim } from '../../store/statements/takeDueClaims';
import { claimStoreOf } from '../shared/claimStore';
import { failPoll } from './failPoll';
import { nothingToTest } from './nothingToTest';
import { READY_TO_RUN, RECONCILE_FIRST } from './outputs';
import { keepPollId, nextPollId } from './pollIds';
import { readLook, type Look } from './readLook';
import { recoveredItem, whyNotAnItem } from './recoveredItem';

/**
 * One poll: takes what is due, and starts an execution for each claim, so that one that fails spoils no other. In the
 * editor, "Fetch Test Event" gives one test claim.
 *
 * Should n8n end between taking and starting, or the workflow be unpublished in between, then the claims are under a
 * lease that nobody works under. It ends, and they come back: taken over where their own setting says so, else to be
 * reconciled first (`store/statements/takeDueClaims.ts`).
 */
export async function recoverClaims(context: IPollFunctions): Promise<INodeExecutionData[][] | null> {
	try {
		const look = readLook(context);
		const store = await claimStoreOf(context);
		const owner = ownerOf(context);
		const claims = await withoutUnfit(store, owner, look, await take(store, owner, look));
		if (context.getMode() !== 'manual') return await startExecutions(context, store, owner, look, claims);
		if (claims.length === 0) throw await nothingToTest(store, look);
		return outputsFor(claims[0], look);
	} catch (failure) {
		return failPoll(context, failure);
	}
}

/** Who takes. The execution that will work on the claim has no ID yet: the store puts the poll's in its place. */
function ownerOf(context: IPollFunctions): Owner {
	const { id, name } = context.getNode();
	return { instanceId: context.getInstanceId(), workflowId: context.getWorkflow().id ?? '', executionId: '', nodeId: id, nodeName: name };
}

async function take(store: ClaimStore, owner: Owner, { request }: Look): Promise<RecoveredClaim[]> {
	const poll = JSON.stringify([owner.workflowId, owner.nodeId, request]);
	const pollId = nextPollId(poll);
	try {
		return await store.takeDue(owner, { ...request, pollId });
	} catch (failure) {
		const error = asClaimError(failure);
		if (error.kind === 'outcome_unknown') keepPollId(poll, pollId, request.leaseSeconds);
		throw error;
	}
}

/** Claims that can be handed on; of the others a person hears, and no attempt after attempt is used up by them. */
async function withoutUnfit(store: ClaimStore, owner: Owner, { resultField }: Look, claims: RecoveredClaim[]): Promise<RecoveredClaim[]> {
	const fit: RecoveredClaim[] = [];
	const unfit: OutcomeRequest[] = [];
	for (const claim of claims) {
		const reason = whyNotAnItem(claim, resultField);
		if (reason === undefined) fit.push(claim);
		else unfit.push({ ...NOTHING_TO_RECORD, claim: claim.record, reason });
	}
	if (unfit.length > 0) await store.settle('needsReview', owner, unfit);
	return fit;
}

async function startExecutions(context: IPollFunctions, store: ClaimStore, owner: Owner, look: Look, claims: RecoveredClaim[]): Promise<null> {
	const refused: Array<{ claim: RecoveredClaim; failure: unknown }> = [];
	for (const claim of claims) {
		try {
			context.__emit(outputsFor(claim, look));
		} catch (failure) {
			refused.push({ claim, failure });
		}
	}
	if (refused.length === 0) return null;
	// What is to be reconciled stays as it is: it is uncertain, and comes back when its lease ends.
	const ready = refused.filter(({ claim }) => claim.course === 'ready').map(({ claim }) => ({ ...NOTHING_TO_RECORD, claim: claim.record, reason: 'n8n refused to start an execution for it' }));
	await store.settle('retryableFailure', owner, ready);
	const { failure } = refused[0];
	throw new ClaimError('unexpected', `n8n refused to start an execution for ${refused.length} of ${claims.length} claims`, {
		hint: `n8n said: ${failure instanceof Error ? failure.message : 'nothing'}. The claims come back later.`,
		retryable: true,
	});
}

const NOTHING_TO_RECORD = { reference: null, result: null, keepPayload: true, retryAfterSeconds: 60, leaseSeconds: 1 };

function outputsFor(claim: RecoveredClaim, { resultField }: Look): INodeExecutionData[][] {
	const outputs: INodeExecutionData[][] = [[], []];
	outputs[claim.course === 'ready' ? READY_TO_RUN : RECONCILE_FIRST].push(recoveredItem(claim, resultField));
	return outputs;
}
