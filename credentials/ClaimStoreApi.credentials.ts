import type { ICredentialType, INodeProperties } from 'n8n-workflow';

const withFields = { show: { connectWith: ['fields'] } };
const withTls = { hide: { tls: ['disable'] } };

export class ClaimStoreApi implements ICredentialType {
	name = 'claimStoreApi';

	displayName = 'Claim Store (Postgres) API';

	icon = { light: 'file:claimStoreApi.svg', dark: 'file:claimStoreApi.dark.svg' } as const;

	documentationUrl = 'https://www.npmjs.com/package/n8n-nodes-idempotent-claim';

	properties: INodeProperties[] = [
		{
			displayName: 'Connect With',
			name: 'connectWith',
			type: 'options',
			default: 'fields',
			options: [
				{ name: 'Connection String', value: 'connectionString' },
				{ name: 'Fields', value: 'fields' },
			],
		},
		// eslint-disable-next-line @n8n/community-nodes/credential-unnecessary-password -- it holds the password
		{
			displayName: 'Connection String',
			name: 'connectionString',
			type: 'string',
			typeOptions: { password: true },
			default: '',
			placeholder: 'e.g. postgresql://user:password@db.example.com:5432/postgres?sslmode=verify-full',
			displayOptions: { show: { connectWith: ['connectionString'] } },
			description: 'As your database provider shows it. An sslmode in it wins over TLS below; choose Verify Full there to paste a CA certificate.',
		},
		{ displayName: 'Host', name: 'host', type: 'string', default: 'localhost', displayOptions: withFields, description: 'In Docker, the name of the database service, not localhost' },
		{ displayName: 'Port', name: 'port', type: 'number', default: 5432, displayOptions: withFields },
		{ displayName: 'Database', name: 'database', type: 'string', default: 'postgres', displayOptions: withFields },
		{ displayName: 'User', name: 'user', type: 'string', default: 'postgres', displayOptions: withFields },
		{ displayName: 'Password', name: 'password', type: 'string', typeOptions: { password: true }, default: '', displayOptions: withFields },
		{
			displayName: 'TLS',
			name: 'tls',
			type: 'options',
			default: 'disable',
			options: [
				{ name: 'Disable', value: 'disable', description: 'Not encrypted: for a database on the same machine or private network' },
				{ name: 'Require', value: 'require', description: 'Encrypted, but the server is not verified' },
				{ name: 'Verify Full', value: 'verifyFull', description: 'Encrypted; the server\'s certificate and host name are verified' },
			],
		},
		{
			displayName: 'CA Certificate',
			name: 'caCertificate',
			type: 'string',
			typeOptions: { rows: 4, password: true },
			default: '',
			placeholder: 'e.g. -----BEGIN CERTIFICATE-----',
			displayOptions: withTls,
			description: 'The CA that signed the server\'s certificate, where it is not a public one',
		},
		{ displayName: 'Client Certificate', name: 'clientCertificate', type: 'string', typeOptions: { rows: 4, password: true }, default: '', displayOptions: withTls, description: 'Where the server asks clients for one' },
		// eslint-disable-next-line @n8n/community-nodes/credential-unnecessary-password -- it is a private key
		{ displayName: 'Client Key', name: 'clientKey', type: 'string', typeOptions: { rows: 4, password: true }, default: '', displayOptions: withTls, description: 'The private key of the client certificate' },
		{ displayName: 'Schema', name: 'schema', type: 'string', default: 'public', description: 'Schema of the claim table' },
		{ displayName: 'Table', name: 'table', type: 'string', default: 'idempotent_claims', description: 'Name of the claim table' },
		{
			displayName: 'Create Table',
			name: 'createTable',
			type: 'boolean',
			default: true,
			description: 'Whether the table is created and upgraded when needed. Otherwise a DBA does it with the SQL that the package ships.',
		},
		{
			displayName: 'Maximum Connections',
			name: 'maxConnections',
			type: 'number',
			typeOptions: { minValue: 1, maxValue: 1000, numberPrecision: 0 },
			default: 10,
			description: 'Most connections that one n8n process opens with this credential',
		},
		{
			displayName: 'Timeout (Milliseconds)',
			name: 'timeoutMs',
			type: 'number',
			typeOptions: { minValue: 100, maxValue: 600000, numberPrecision: 0 },
			default: 10000,
			description: 'Longest wait for a connection, for a statement, and for another session that holds the same key',
		},
	];
}
