import { randomUUID } from 'node:crypto';
import { claimDeliveries } from './claim';
import { asClaimError, type ClaimError } from './errors';
import type { Identity } from './identity';
import { NO_PAYLOAD } from './payload';
import type { Owner } from './record';
import { keyOf } from './request';
import { KEY_RECORD, SAME_CLAIM } from './sql';
import { deleteRefused } from './statements/deleteRight';
import type { ClaimTable } from './table/claimTable';

/** What many simultaneous claims of one key came to; right is exactly one `newClaims` and no error. */
export interface SelfTest {
	readonly passed: boolean;
	readonly newClaims: number;
	readonly duplicates: number;
	/** The first error, if there was any. */
	readonly error: ClaimError | null;
	/** Why the test's row could not be removed again; null when it was. It is a test claim, so a purge removes it. */
	readonly leftBehind: ClaimError | null;
}

const CLAIMS = 100;
const RETENTION_DAYS = 1;

/** Claims one random key a hundred times at once, and removes it: whether this server keeps the one promise that counts. Never throws. */
export async function testStore(table: ClaimTable, owner: Owner): Promise<SelfTest> {
	const identity: Identity = { deliveryId: randomUUID(), source: 'self-test', account: '', action: 'n8n-nodes-idempotent-claim', environment: 'test' };
	const claimOnce = async () =>
		await claimDeliveries(table, [
			{
				operation: 'deduplicate',
				owner,
				request: {
					identity,
					ownerToken: randomUUID(),
					eventType: null,
					fingerprint: null,
					payloadMismatch: 'knownDuplicate',
					payload: NO_PAYLOAD,
					leaseSeconds: 1,
					whenLeaseExpires: 'outcomeUncertain',
					maxAttempts: 1,
					retentionDays: RETENTION_DAYS,
					takenAnewEachRun: false,
				},
			},
		]);
	const answers = (await Promise.all(Array.from({ length: CLAIMS }, claimOnce))).flat();
	const newClaims = answers.filter(({ verdict }) => verdict === 'new').length;
	const duplicates = answers.filter(({ verdict }) => verdict === 'duplicate').length;
	const failed = answers.find((answer) => answer.verdict === 'error');
	return {
		passed: newClaims === 1 && duplicates === CLAIMS - 1,
		newClaims,
		duplicates,
		error: failed?.verdict === 'error' ? failed.error : null,
		leftBehind: newClaims === 0 ? null : await remove(table, identity),
	};
}

async function remove(table: ClaimTable, identity: Identity): Promise<ClaimError | null> {
	try {
		await table.send({
			writes: false,
			text: `DELETE FROM ${table.name} AS claim USING json_to_recordset($1::json) AS item(${KEY_RECORD}) WHERE ${SAME_CLAIM}`,
			values: [JSON.stringify([keyOf(identity)])],
		});
		return null;
	} catch (failure) {
		return asClaimError(await deleteRefused(table, failure));
	}
}
