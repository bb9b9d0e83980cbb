import { Client } from 'pg';
import { newEvent, signed } from '../../sandbox/sender';
import { order, sandboxAddress } from './support/address';
import { LeadEvents, NOT_READY } from './support/leadEvents';
import { until } from './support/until';
import { sendToWebhook } from './support/webhookCall';

const { claimStoreDatabase, workflows, n8nUrl } = sandboxAddress();
const events = new LeadEvents();

afterAll(async () => {
	await events.close();
});

/** What a webhook says, and whether n8n says that it is ready; undefined while nothing listens. */
async function asked(event: unknown): Promise<{ status: number; text: string; readiness: number } | undefined> {
	const { body, headers } = signed(event);
	try {
		return { ...(await sendToWebhook(workflows['durable-inbox'].webhookUrl, body, headers)), readiness: (await fetch(`${n8nUrl}/healthz/readiness`)).status };
	} catch {
		return undefined;
	}
}

test('while n8n migrates its database it says 200 to a delivery and runs nothing; only its readiness tells', async () => {
	const event = newEvent();
	const database = new Client({ ...claimStoreDatabase, database: 'n8n', user: 'n8n' });
	await database.connect();
	await order('kill');
	// As a long migration does: n8n is up, and waits.
	await database.query('BEGIN');
	await database.query('LOCK TABLE migrations IN ACCESS EXCLUSIVE MODE');
	const restarted = order('restart');
	let answer: Awaited<ReturnType<typeof asked>>;
	await until('n8n listens, and waits for its database', 60, async () => (answer = await asked(event))?.text.startsWith(NOT_READY) ?? false);
	expect(answer).toEqual({ status: 200, text: expect.any(String) as string, readiness: 503 });
	await database.query('COMMIT');
	await database.end();
	await restarted;

	expect(await events.found(event)).toMatchObject({ state: undefined, leads: [] });
	expect(await asked(event)).toEqual({ status: 200, text: '', readiness: 200 });
	await events.whenIn('completed', event);
});
