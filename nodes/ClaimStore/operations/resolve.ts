import type { INodeProperties } from 'n8n-workflow';
import { invalidSetting } from '../../../store/errors';
import { readSeenHandle } from '../../../store/handle';
import { readNote } from '../../../store/identity';
import { readChoice, readParameter, refuseTypedExpression } from '../../shared/parameters';
import { tokenOfItem } from '../../shared/run';
import { claimJson, missingClaimJson } from '../claimJson';
import { shownFor, type OperationCall, type StoreOperation } from '../operation';

const properties: INodeProperties[] = [
	{
		displayName: 'Handle',
		name: 'handle',
		type: 'string',
		required: true,
		default: '',
		placeholder: 'e.g. {{ $json.handle }}',
		description: 'The handle of the record that was looked at, as Get or Get Many gave it. If the claim has moved since, nothing is written and the answer is "changed".',
	},
	{
		displayName: 'Decision',
		name: 'decision',
		type: 'options',
		default: 'needsReview',
		options: [
			{ name: 'Completed', value: 'completed', description: 'The action happened: the reference says what it created' },
			{ name: 'Needs Review', value: 'needsReview', description: 'A person must decide later: no recovery, no takeover until then' },
			{ name: 'No Action Needed', value: 'noActionNeeded', description: 'Finished without an action' },
			{ name: 'Release', value: 'release', description: 'The action certainly did not happen: the next delivery runs it, or recovery where its payload is stored (payloadComplete); also when its attempts are used up' },
		],
		description: 'What is to become of the claim. Whoever owns it now can record nothing any more.',
	},
	{
		displayName: 'Outcome Reference',
		name: 'outcomeReference',
		type: 'string',
		required: true,
		default: '',
		placeholder: 'e.g. lead-4711',
		displayOptions: { show: { decision: ['completed'] } },
		description: 'The ID of what the action created at the destination; later duplicates carry it',
	},
	{
		displayName: 'Decided By',
		name: 'decidedBy',
		type: 'string',
		required: true,
		default: '',
		placeholder: 'e.g. on-call operator',
		description: 'Who decided; kept in the history of the claim',
	},
	{
		displayName: 'Reason',
		name: 'reason',
		type: 'string',
		required: true,
		default: '',
		placeholder: 'e.g. the CRM has no such lead',
		description: 'Why, in words for the person who reads the history later',
	},
];

export const resolve: StoreOperation = {
	option: { name: 'Resolve', value: 'resolve', action: 'Resolve a claim', description: "A person's decision on a claim that is not completed" },
	forAgents: false,
	properties: shownFor('resolve', properties),
	prepare(call) {
		const { context, run, itemIndex } = call;
		const seen = readSeenHandle(readParameter(context, 'handle', 'Handle', itemIndex, ''));
		const resolution = readChoice('Decision', readParameter(context, 'decision', 'Decision', itemIndex), ['completed', 'noActionNeeded', 'release', 'needsReview']);
		const decision = {
			seen,
			resolution,
			reference: resolution === 'completed' ? readWords(call, 'outcomeReference', 'Outcome Reference', 'Give the ID of what the action created; if it created nothing, choose No Action Needed.') : null,
			decidedBy: readWords(call, 'decidedBy', 'Decided By', 'Say who decided: it is kept in the history of the claim.'),
			reason: readWords(call, 'reason', 'Reason', 'Say why: it is kept in the history of the claim.'),
			// The same when Retry On Fail runs the node again.
			id: tokenOfItem(run, itemIndex),
		};
		return async () => {
			const { answer, details } = await (await call.store()).resolve(decision);
			return [{ answer, ...(details === null ? missingClaimJson(seen.identity) : claimJson(details, false)) }];
		};
	},
};

function readWords({ context, itemIndex }: OperationCall, name: string, label: string, whatToDo: string): string {
	refuseTypedExpression(context, name, label, itemIndex);
	const words = readNote(label, readParameter(context, name, label, itemIndex, ''));
	if (words === null || words.trim() === '' || words === 'undefined' || words === 'null') throw invalidSetting(`${label} is missing`, whatToDo);
	return words;
}
