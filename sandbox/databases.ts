import { Client } from 'pg';
import type { RunningPostgres } from './postgres';

export interface Database {
	host: string;
	port: number;
	database: string;
	user: string;
	password: string;
}

/**
 * One database with an owner of its own name: nothing in the sandbox but this file works as the
 * superuser, as it would be anywhere else.
 */
export async function ensureDatabase(server: RunningPostgres, name: string): Promise<Database> {
	const { host, port, user, password } = server;
	const client = new Client({ host, port, user, password, database: 'postgres' });
	await client.connect();
	try {
		const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name]);
		if (!rowCount) {
			await client.query(`CREATE ROLE ${name} LOGIN PASSWORD '${password}'`);
			await client.query(`CREATE DATABASE ${name} OWNER ${name}`);
		}
	} finally {
		await client.end();
	}
	return { host, port, database: name, user: name, password };
}
