import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import type { ClaimAnswer } from '../../store/claim';
import { asClaimError, type ClaimError } from '../../store/errors';
import { handleOf } from '../../store/handle';
import type { Operation } from '../../store/record';
import type { ClaimRequest } from '../../store/request';
import type { ClaimStore } from '../../store/claimStore';
import { claimFieldJson, handleOfRecord, withClaim, withSharedResponseCode, type ClaimField } from '../shared/claimField';
import { claimStoreOf } from '../shared/claimStore';
import { failLoudly, mustFailLoudly } from '../shared/failLoudly';
import { readChoice, readParameter } from '../shared/parameters';
import { describeRun, type NodeRun } from '../shared/run';
import { refuseAlwaysOutputData } from '../shared/stop';
import { refuseUnmatched } from './deliveryIdPattern';
import { KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR } from './outputs';
import { hintsFor } from './hints';
import { readClaimRequest, type ItemReading } from './readClaimRequest';
import { responseCodeOf } from './responseCode';

/**
 * Claims each item's delivery and routes it. But for the refusal of Always Output Data and an unconnected
 * Operational Error, nothing escapes: the engine would send the input of a throwing node on by New Claim.
 */
export async function claimItems(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	refuseAlwaysOutputData(context);
	const run = describeRun(context);
	const items = context.getInputData();
	const { operation, readings } = await readItems(context, run, items);

	const requests = readings.flatMap(({ request }) => request ?? []);
	let store: ClaimStore | null = null;
	let answers: ClaimAnswer[];
	try {
		store = await claimStoreOf(context);
		answers = await store.claim(operation, run.owner, requests);
	} catch (failure) {
		answers = requests.map(() => errorAnswer(asClaimError(failure)));
	}

	let next = 0;
	const fields = withSharedResponseCode(readings.map((reading) => fieldOf(operation, reading, reading.request ? answers[next++] : errorAnswer(asClaimError(reading.error)))));

	if (mustFailLoudly(run, OPERATIONAL_ERROR, fields)) {
		failLoudly(context, fields, await putBack(store, run, requests, answers));
	}
	if (run.isManual) context.addExecutionHints(...hintsFor(context, run, operation, fields));

	const outputs: INodeExecutionData[][] = [[], [], []];
	fields.forEach((field, itemIndex) => {
		outputs[OUTPUT_OF[field.status] ?? OPERATIONAL_ERROR].push(withClaim(items[itemIndex], itemIndex, readings[itemIndex].resultField, claimFieldJson(field)));
	});
	return outputs;
}

const OUTPUT_OF: Partial<Record<ClaimField['status'], number>> = { new: NEW_CLAIM, duplicate: KNOWN_DUPLICATE, error: OPERATIONAL_ERROR };

async function readItems(context: IExecuteFunctions, run: NodeRun, items: INodeExecutionData[]): Promise<{ operation: Operation; readings: ItemReading[] }> {
	try {
		const operation = readChoice('Operation', readParameter(context, 'operation', 'Operation', 0), ['claim', 'receive', 'deduplicate']);
		const readings = items.map((item, itemIndex) => readClaimRequest(context, run, operation, item, itemIndex));
		await refuseUnmatched(readings);
		return { operation, readings };
	} catch (failure) {
		const error = asClaimError(failure);
		return { operation: 'claim', readings: items.map(() => ({ identity: {}, eventType: null, resultField: 'claim', successCode: undefined, pattern: undefined, request: null, error })) };
	}
}

function errorAnswer(error: ClaimError): ClaimAnswer {
	return { verdict: 'error', error, record: null, payloadChanged: null };
}

function fieldOf(operation: Operation, reading: ItemReading, answer: ClaimAnswer): ClaimField {
	return {
		status: answer.verdict,
		reason: answer.verdict === 'error' ? null : answer.reason,
		responseCode: responseCodeOf(answer, reading.successCode),
		handle: handleFor(operation, reading, answer),
		identity: reading.identity,
		eventType: reading.eventType,
		record: answer.record,
		payloadChanged: answer.payloadChanged,
		error: answer.verdict === 'error' ? answer.error : null,
	};
}

/** A received delivery belongs to nobody yet; an unknown outcome may be ours. */
function handleFor(operation: Operation, reading: ItemReading, answer: ClaimAnswer): string | null {
	if (operation === 'receive') return null;
	if (answer.verdict === 'new') return handleOfRecord(answer.record);
	if (answer.verdict === 'error' && answer.error.kind === 'outcome_unknown' && reading.request) return handleOf({ ...reading.request, version: 1 });
	return null;
}

/** Gives back what this run has just claimed, since the execution ends here; says how that went. */
async function putBack(store: ClaimStore | null, run: NodeRun, requests: readonly ClaimRequest[], answers: readonly ClaimAnswer[]): Promise<string> {
	// Also what may have been claimed: where it was not, there is no row with this run's token.
	const claims = requests.filter((_, index) => mayOwn(answers[index]));
	if (store === null || claims.length === 0) return '';
	try {
		await store.putBack(run.owner, claims, 'The execution failed at this node before the action');
		return 'What this run had claimed was put back: a redelivery is a new claim.';
	} catch {
		return 'The claims of this run could not be put back; they stay until their lease ends.';
	}
}

function mayOwn(answer: ClaimAnswer): boolean {
	if (answer.verdict === 'new') return answer.record.state !== 'received';
	return answer.verdict === 'error' && answer.error.kind === 'outcome_unknown';
}
