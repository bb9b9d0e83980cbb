import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import type { ClaimStore } from '../../store/claimStore';
import type { OutcomeKind } from '../../store/decisions';
import { asClaimError, type ClaimError, invalidSetting } from '../../store/errors';
import { handleOf, readHandle, type Ownership } from '../../store/handle';
import type { OutcomeAnswer } from '../../store/outcome';
import type { OutcomeRequest } from '../../store/statements/recordOutcomes';
import { claimFieldJson, errorInWords, refuseUnreadableItem, withClaim, withSharedResponseCode, type ClaimField } from '../shared/claimField';
import { claimStoreOf } from '../shared/claimStore';
import { failLoudly, mustFailLoudly } from '../shared/failLoudly';
import { DEFAULT_RESULT_FIELD, readChoice, readOptions, readParameter, readResultField } from '../shared/parameters';
import { describeRun, isOutputConnected, type NodeRun } from '../shared/run';
import { refuseAlwaysOutputData } from '../shared/stop';
import { OPERATIONAL_ERROR, RECORDED, STALE_CLAIM } from './outputs';
import { UpstreamClaims } from './findClaim';
import { readOutcomeWords } from './readOutcome';

/** Records each item's outcome and routes it; nothing escapes but the failure of an unconnected Operational Error. */
export async function completeClaims(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	refuseAlwaysOutputData(context);
	const run = describeRun(context);
	const items = context.getInputData();
	const results = await settleItems(context, run, items);

	const fields = withSharedResponseCode(results.map(({ field }) => field));
	if (mustFailLoudly(run, OPERATIONAL_ERROR, fields)) {
		failLoudly(context, fields, 'Claims whose outcome was not recorded become uncertain when their lease ends.');
	}
	const failed = fields.find(({ error }) => error !== null);
	if (run.isManual && failed?.error) {
		context.addExecutionHints({ message: errorInWords(failed.error), type: 'warning', location: 'outputPane' });
	}
	if (run.isManual && failed && !isOutputConnected(run, OPERATIONAL_ERROR)) {
		context.addExecutionHints({ message: 'Operational Error is not connected. In production an item that is due there fails the execution.', type: 'warning', location: 'outputPane' });
	}

	const outputs: INodeExecutionData[][] = [[], [], []];
	fields.forEach((field, index) => {
		const { itemIndex, resultField } = results[index];
		outputs[OUTPUT_OF[field.status] ?? OPERATIONAL_ERROR].push(withClaim(items[itemIndex], itemIndex, resultField, claimFieldJson(field)));
	});
	return outputs;
}

const OUTPUT_OF: Partial<Record<ClaimField['status'], number>> = { recorded: RECORDED, stale: STALE_CLAIM, error: OPERATIONAL_ERROR };

/** What became of one claim of one item. */
interface Result {
	itemIndex: number;
	resultField: string;
	field: ClaimField;
}

/** One claim to settle, or the reason why there is none. */
interface Task {
	itemIndex: number;
	resultField: string;
	outcome: OutcomeKind;
	/** Known also where the words for its outcome are wrong, so that the error says which claim is left open. */
	claim: Ownership | null;
	request: OutcomeRequest | null;
	error: ClaimError | null;
}

async function settleItems(context: IExecuteFunctions, run: NodeRun, items: INodeExecutionData[]): Promise<Result[]> {
	let opening: Promise<ClaimStore> | undefined;
	const store = async () => await (opening ??= claimStoreOf(context));
	const upstream = new UpstreamClaims(context, run, store);
	const tasks: Task[] = [];
	for (const [itemIndex, item] of items.entries()) {
		tasks.push(...(await readTasks(context, store, upstream, item, itemIndex)));
	}

	const answers = new Map<Task, OutcomeAnswer>();
	for (const outcome of new Set(tasks.map((task) => task.outcome))) {
		const group = tasks.filter((task): task is Task & { request: OutcomeRequest } => task.outcome === outcome && task.request !== null);
		const settled = await settleGroup(store, outcome, run, group.map(({ request }) => request));
		group.forEach((task, index) => answers.set(task, settled[index]));
	}
	return tasks.map((task) => ({
		itemIndex: task.itemIndex,
		resultField: task.resultField,
		field: fieldOf(task.claim, task.outcome, answers.get(task) ?? { verdict: 'error', error: asClaimError(task.error) }),
	}));
}

async function settleGroup(store: () => Promise<ClaimStore>, outcome: OutcomeKind, run: NodeRun, requests: OutcomeRequest[]): Promise<OutcomeAnswer[]> {
	try {
		return await (await store()).settle(outcome, run.owner, requests);
	} catch (failure) {
		const error = asClaimError(failure);
		return requests.map(() => ({ verdict: 'error', error }));
	}
}

const OUTCOMES: readonly OutcomeKind[] = ['completed', 'noActionNeeded', 'retryableFailure', 'outcomeUncertain', 'needsReview', 'extendLease'];
/** n8n can call an execution dead while its worker still acts: from outside, nothing better is known. */
const OUTCOMES_FROM_OUTSIDE: readonly OutcomeKind[] = ['outcomeUncertain', 'needsReview'];

/** What is to be settled for one item: one claim, or with Claim From "Execution" any number. Never throws. */
async function readTasks(context: IExecuteFunctions, store: () => Promise<ClaimStore>, upstream: UpstreamClaims, item: INodeExecutionData, itemIndex: number): Promise<Task[]> {
	let resultField = DEFAULT_RESULT_FIELD;
	let outcome: OutcomeKind = 'completed';
	let claims: Array<Ownership | null> = [null];
	try {
		refuseUnreadableItem(item);
		const options = readOptions(context, itemIndex);
		resultField = readResultField(options);
		const claimFrom = readChoice('Claim From', readParameter(context, 'claimFrom', 'Claim From', itemIndex), ['upstream', 'handle', 'execution']);
		claims = await claimsOf(claimFrom);
		outcome = readChoice('Outcome', readParameter(context, 'outcome', 'Outcome', itemIndex), claimFrom === 'execution' ? OUTCOMES_FROM_OUTSIDE : OUTCOMES);
		const words = readOutcomeWords(context, outcome, options, itemIndex);
		return claims.map((claim) => ({ itemIndex, resultField, outcome, claim, request: claim && { ...words, claim }, error: null }));
	} catch (failure) {
		return claims.map((claim) => ({ itemIndex, resultField, outcome, claim, request: null, error: asClaimError(failure) }));
	}

	async function claimsOf(claimFrom: 'upstream' | 'handle' | 'execution'): Promise<Ownership[]> {
		switch (claimFrom) {
			case 'upstream':
				return [await upstream.claimOf(item, itemIndex, resultField)];
			case 'handle':
				return [readHandle(readParameter(context, 'handle', 'Handle', itemIndex, ''))];
			case 'execution': {
				const executionId = readExecutionId(readParameter(context, 'executionId', 'Execution ID', itemIndex, ''));
				return await (await store()).claimsInProcessingOf({ instanceId: context.getInstanceId(), executionId });
			}
		}
	}
}

function readExecutionId(value: unknown): string {
	const text = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value;
	if (typeof text !== 'string' || text.trim() === '' || text === 'undefined' || text === 'null') {
		throw invalidSetting('The Execution ID is missing', 'In an error workflow it is {{ $json.execution.id }}.');
	}
	return text.trim();
}

function fieldOf(claim: Ownership | null, outcome: OutcomeKind, answer: OutcomeAnswer): ClaimField {
	const record = answer.verdict === 'error' ? null : answer.record;
	return {
		status: answer.verdict,
		reason: answer.verdict === 'stale' ? answer.reason : null,
		responseCode: responseCodeOf(outcome, answer),
		handle: claim === null ? null : handleOf(claim),
		identity: claim?.identity ?? {},
		eventType: null,
		record,
		payloadChanged: null,
		error: answer.verdict === 'error' ? answer.error : null,
	};
}

/** A retryable failure is the sender's to deliver again, unless the delivery is stored here by `receive`. */
function responseCodeOf(outcome: OutcomeKind, answer: OutcomeAnswer): number {
	if (answer.verdict === 'error') return 503;
	return answer.verdict === 'recorded' && outcome === 'retryableFailure' && answer.record.operation !== 'receive' ? 503 : 200;
}
