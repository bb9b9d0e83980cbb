import type { ClaimStore } from '../../store/claimStore';
import { invalidSetting, type ClaimError } from '../../store/errors';
import type { Look } from './readLook';

const MOST_THAT_ARE_COUNTED = 100;

/** What to tell somebody who fetches a test event where no test claim is due. @throws ClaimError */
export async function nothingToTest(store: ClaimStore, { request }: Look): Promise<ClaimError> {
	const { source, action, environment } = request;
	const states = (await store.find({ source, action, environment }, MOST_THAT_ARE_COUNTED)).map(({ record }) => record.state);
	const counts = [...new Set(states)].map((state) => `${states.filter((one) => one === state).length} ${state}`);
	const found = counts.length === 0 ? 'There is no test claim of this source and action.' : `Test claims of this source and action: ${counts.join(', ')}; none of them is due.`;
	return invalidSetting(
		'No test claim is due',
		`A run in the editor takes at most one claim, and only one that a run in the editor made: live claims are taken once the workflow is published. ${found} To make one, send a delivery to the test URL of the workflow that has Idempotent Claim with the operation Receive and this source and action, then fetch again.`,
	);
}
