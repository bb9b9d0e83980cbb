import { Credentials } from 'n8n-core';
import {
	ICredentialsHelper,
	NodeHelpers,
	type ICredentialDataDecryptedObject,
	type ICredentialType,
	type INodeCredentialsDetails,
	type INodeProperties,
	type IWorkflowExecuteAdditionalData,
} from 'n8n-workflow';

/** What n8n's database holds for a credential: its data (a function: as edited meanwhile), or bytes that another key has encrypted. */
export type StoredCredential = ICredentialDataDecryptedObject | (() => ICredentialDataDecryptedObject) | 'encrypted with another key';

/**
 * n8n's credential store as far as a node meets it: defaults filled in from the credential type, and
 * n8n's own exceptions for what is missing or cannot be decrypted.
 */
export class CredentialVault extends ICredentialsHelper {
	constructor(
		private readonly stored: Record<string, StoredCredential>,
		private readonly types: ICredentialType[],
	) {
		super();
	}

	override async getDecrypted(_additionalData: IWorkflowExecuteAdditionalData, details: INodeCredentialsDetails, type: string): Promise<ICredentialDataDecryptedObject> {
		const stored = this.stored[details.id ?? ''];
		if (stored === undefined) throw new Error(`Credential with ID "${details.id}" does not exist for type "${type}".`);
		const data = stored === 'encrypted with another key' ? await unreadable(details, type) : typeof stored === 'function' ? stored() : stored;
		return NodeHelpers.getNodeParameters(this.getCredentialsProperties(type), data as never, true, false, null, null) as ICredentialDataDecryptedObject;
	}

	override getCredentialsProperties(type: string): INodeProperties[] {
		return this.types.find(({ name }) => name === type)?.properties ?? [];
	}

	override isCredentialUsableByNode(): boolean {
		return true;
	}

	override getParentTypes(): string[] {
		return [];
	}

	override getCredentials = unsupported;
	override authenticate = unsupported;
	override preAuthentication = unsupported;
	override runPreAuthentication = unsupported;
	override updateCredentials = unsupported;
	override updateCredentialsOauthTokenData = unsupported;
}

async function unreadable(details: INodeCredentialsDetails, type: string): Promise<ICredentialDataDecryptedObject> {
	return await new Credentials(details, type, Buffer.from('Salted__ of another instance').toString('base64')).getData();
}

async function unsupported(): Promise<never> {
	return await Promise.reject(new Error('The test engine has no such credential method'));
}
