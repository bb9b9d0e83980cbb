import { createTestDatabase } from './database';
import { startOwnPostgres } from './ownPostgres';

test('two databases of one run do not see each other, and are gone after drop', async () => {
	const one = await createTestDatabase();
	const two = await createTestDatabase();
	await one.query('CREATE TABLE only_here (id int)');
	await expect(two.query('SELECT * FROM only_here')).rejects.toThrow('does not exist');

	await one.drop();
	const left = await two.query('SELECT 1 FROM pg_database WHERE datname = $1', [one.database]);
	expect(left).toEqual([]);
	await two.drop();
});

test('a server of its own can be stopped, killed and brought back with its data', async () => {
	const server = await startOwnPostgres();
	try {
		const database = await createTestDatabase(server);
		await database.query('CREATE TABLE kept AS SELECT 42 AS answer');

		await server.stop();
		await expect(database.query('SELECT 1')).rejects.toThrow();
		await server.start();
		expect(await database.query('SELECT answer FROM kept')).toEqual([{ answer: 42 }]);

		await server.kill();
		await expect(database.query('SELECT 1')).rejects.toThrow();
		await server.start();
		expect(await database.query('SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
	} finally {
		await server.remove();
	}
});
