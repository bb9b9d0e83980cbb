import type { ICredentialsDecrypted, ICredentialTestFunctions, INodeCredentialTestResult } from 'n8n-workflow';
import { checkStore } from '../../store/check';
import { readSettings } from '../../store/connection/settings';
import { asClaimError } from '../../store/errors';
import { errorInWords } from './claimField';
import { tunnelOf } from './tunnel';

/** The credential's "Test": says in plain words what is wrong and what to do. Changes nothing in the database. */
export async function testClaimStoreCredential(this: ICredentialTestFunctions, credential: ICredentialsDecrypted): Promise<INodeCredentialTestResult> {
	try {
		const settings = readSettings(credential.data ?? {});
		const { summary, problems } = await checkStore(settings, tunnelOf(this, settings));
		return problems.length === 0 ? { status: 'OK', message: summary } : { status: 'Error', message: problems.join(' ') };
	} catch (failure) {
		return { status: 'Error', message: errorInWords(asClaimError(failure)) };
	}
}
