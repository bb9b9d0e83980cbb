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

/** What n8n's database holds for a credential: its data, or bytes that another key has encrypted. */
export type StoredCredential = ICredentialDataDecryptedObject | 'encrypted with another key';

/**
 * n8n's credential store as far as a node meets it: encrypted with n8n-core's cipher, defaults filled
 * in from the credential type, and an exception for what is missing or cannot be decrypted.
 */
export class CredentialVault extends ICredentialsHelper {
	constructor(
		private readonly stored: Record<string, StoredCredential>,
		private readonly types: ICredentialType[],
	) {
		super();
	}

	override async getDecrypted(_additionalData: IWorkflowExecuteAdditionalData, details: INodeCredentialsDetails, type: string): Promise<ICredentialDataDecryptedObject> {
		const credentials = await this.getCredentials(details, type);
		const properties = this.getCredentialsProperties(type);
		return NodeHelpers.getNodeParameters(properties, (await credentials.getData()) as never, true, false, null, null) as ICredentialDataDecryptedObject;
	}

	override async getCredentials(details: INodeCredentialsDetails, type: string): Promise<Credentials> {
		const stored = this.stored[details.id ?? ''];
		if (stored === undefined) throw new Error(`Credential with ID "${details.id}" does not exist for type "${type}".`);
		if (stored === 'encrypted with another key') return new Credentials(details, type, Buffer.from('Salted__ of another instance').toString('base64'));
		const credentials = new Credentials(details, type);
		await credentials.setData(stored);
		return credentials;
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

	override authenticate = unsupported;
	override preAuthentication = unsupported;
	override runPreAuthentication = unsupported;
	override updateCredentials = unsupported;
	override updateCredentialsOauthTokenData = unsupported;
}

async function unsupported(): Promise<never> {
	return await Promise.reject(new Error('The test engine has no such credential method'));
}
