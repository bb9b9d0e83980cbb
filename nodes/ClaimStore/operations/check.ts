import type { IDataObject, INodeProperties } from 'n8n-workflow';
import { checkStore } from '../../../store/check';
import type { SelfTest } from '../../../store/selfTest';
import { errorInWords } from '../../shared/claimField';
import { wayToStore } from '../../shared/claimStore';
import { readParameter, readSwitch } from '../../shared/parameters';
import { shownFor, type StoreOperation } from '../operation';

const properties: INodeProperties[] = [
	{
		displayName: 'Self-Test',
		name: 'selfTest',
		type: 'boolean',
		default: false,
		description: 'Whether to claim one random key a hundred times at once as well: exactly one claim must be new. It is a test claim, and is removed afterwards.',
	},
];

export const check: StoreOperation = {
	option: { name: 'Check', value: 'check', action: 'Check the claim store', description: 'Whether claims can be made safely: what the test of the credential finds, as an item' },
	forAgents: true,
	properties: shownFor('check', properties),
	prepare({ context, run, itemIndex, store }) {
		const withSelfTest = readSwitch('Self-Test', readParameter(context, 'selfTest', 'Self-Test', itemIndex));
		return async () => {
			const { settings, openLine } = await wayToStore(context);
			const { summary, problems } = await checkStore(settings, openLine);
			// Without a connection there is nothing to test.
			const selfTest = withSelfTest && summary !== '' ? await (await store()).test(run.owner) : null;
			const found = selfTest === null ? problems : [...problems, ...problemsOf(selfTest)];
			return [{ ok: found.length === 0, summary, problems: found, selfTest: selfTest && selfTestJson(selfTest) }];
		};
	},
};

function problemsOf({ passed, newClaims, duplicates, error }: SelfTest): string[] {
	if (passed) return [];
	const counts = `The self-test failed: of a hundred simultaneous claims of one key, ${newClaims} were new and ${duplicates} duplicates; right is 1 and 99.`;
	return [error === null ? counts : `${counts} ${errorInWords(error)}`];
}

function selfTestJson({ passed, newClaims, duplicates, error, leftBehind }: SelfTest): IDataObject {
	return {
		passed,
		newClaims,
		duplicates,
		error: error && errorInWords(error),
		leftBehind: leftBehind && `The test claim could not be removed again; a purge of test claims removes it. ${errorInWords(leftBehind)}`,
	};
}
