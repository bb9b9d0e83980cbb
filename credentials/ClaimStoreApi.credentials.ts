import type { ICredentialType, INodeProperties } from 'n8n-workflow';

const withFields = { show: { connectWith: ['fields'] } };
const withTls = { hide: { tls: ['disable'] } };
const withTunnel = { show: { sshTunnel: [true] } };
const withSshPassword = { show: { sshTunnel: [true], sshAuthenticateWith: ['password'] } };
const withSshKey = { show: { sshTunnel: [true], sshAuthenticateWith: ['privateKey'] } };

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
		// From here to the passphrase, the names are those of n8n's own Postgres credential.
		{
			displayName: 'SSH Tunnel',
			name: 'sshTunnel',
			type: 'boolean',
			default: false,
			description: 'Whether to reach the database through an SSH server. Its host and port, above, are then those that the SSH server sees.',
		},
		{
			displayName: 'SSH Authenticate With',
			name: 'sshAuthenticateWith',
			type: 'options',
			default: 'password',
			options: [
				{ name: 'Password', value: 'password' },
				{ name: 'Private Key', value: 'privateKey' },
			],
			displayOptions: withTunnel,
		},
		{ displayName: 'SSH Host', name: 'sshHost', type: 'string', default: '', placeholder: 'e.g. ssh.example.com', displayOptions: withTunnel },
		{ displayName: 'SSH Port', name: 'sshPort', type: 'number', default: 22, displayOptions: withTunnel },
		{ displayName: 'SSH User', name: 'sshUser', type: 'string', default: '', placeholder: 'e.g. tunnel', displayOptions: withTunnel },
		{ displayName: 'SSH Password', name: 'sshPassword', type: 'string', typeOptions: { password: true }, default: '', displayOptions: withSshPassword },
		{
			displayName: 'SSH Private Key',
			name: 'privateKey',
			type: 'string',
			typeOptions: { rows: 4, password: true },
			default: '',
			placeholder: 'e.g. -----BEGIN OPENSSH PRIVATE KEY-----',
			displayOptions: withSshKey,
			description: 'Its public key must be allowed on the SSH server for this user',
		},
		{ displayName: 'SSH Key Passphrase', name: 'passphrase', type: 'string', typeOptions: { password: true }, default: '', displayOptions: withSshKey, description: 'Where the key has one' },
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
