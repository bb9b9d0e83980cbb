import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import { DestinationClient } from '../../sandbox/destination';
import type { LeadEvent } from '../../sandbox/sender';
import { exampleNames, readExample, type Named } from '../../sandbox/setup';
import { LEASE_OVER, RETRY_DUE } from '../support/timePassed';
import { sandboxAddress } from './support/address';
import { AWAY, createClaimStore } from './support/claimStore';
import { Editor } from './support/editor';
import { createCopy, type CopyOptions, type NodeParameters } from './support/exampleCopy';
import { itemsOf, N8n, type Execution, type SavedWorkflow } from './support/n8n';
import { until } from './support/until';
import { sendToWebhook } from './support/webhookCall';

/**
 * The examples batch-sender and housekeeping, imported and run in a real n8n. Each test has a claim table of its own: the
 * counts are exact, and no other workflow recovers its claims.
 */

const KNOWN_DUPLICATE = 1;
const OPERATIONAL_ERROR = 2;
const aText = expect.any(String) as string;

let n8n: N8n;
let destination: DestinationClient;
let database: Pool;
const tables: string[] = [];
const published: SavedWorkflow[] = [];

beforeAll(() => {
	n8n = new N8n();
	destination = new DestinationClient(sandboxAddress().destinationUrl);
	database = new Pool({ ...sandboxAddress().claimStoreDatabase, max: 2 });
});

afterEach(async () => {
	await destination.behave('work');
});

afterAll(async () => {
	for (const workflow of published) await n8n.deactivate(workflow);
	for (const table of tables) await database.query(`DROP TABLE IF EXISTS ${table}`);
	await database.end();
});

/** A claim store with nothing in it. */
class OwnStore {
	private constructor(
		readonly table: string,
		readonly credential: Named,
	) {}

	static async open(changes: Record<string, unknown> = {}): Promise<OwnStore> {
		const { table, credential } = await createClaimStore(n8n, 'upkeep', changes);
		tables.push(table);
		return new OwnStore(table, credential);
	}

	/** Its table is made by the first claim. */
	async exists(): Promise<boolean> {
		return (await database.query('SELECT FROM pg_tables WHERE tablename = $1', [this.table])).rowCount === 1;
	}

	/** State and attempt of each claim, by delivery ID. */
	async states(): Promise<Record<string, string>> {
		const { rows } = await database.query<{ id: string; text: string }>(`SELECT delivery_id AS id, concat_ws(' ', state, attempt) AS text FROM ${this.table} ORDER BY 1`);
		return Object.fromEntries(rows.map(({ id, text }) => [id, text]));
	}

	async ids(): Promise<string[]> {
		return Object.keys(await this.states());
	}

	/** Changes claims behind the nodes' backs: time that has passed, a worker that has died. */
	async alter(changes: string, ids: string[]): Promise<void> {
		const { rowCount } = await database.query(`UPDATE ${this.table} SET ${changes} WHERE delivery_id = ANY($1)`, [ids]);
		expect(rowCount).toBe(ids.length);
	}
}

/** A copy of an example that works on this store: nothing else is chosen but what the test changes. */
async function importCopy(name: string, { table, credential }: OwnStore, options: CopyOptions = {}): Promise<SavedWorkflow> {
	return await createCopy(n8n, name, `${name} on ${table}`, { credentials: { claimStoreApi: credential }, ...options });
}

async function publish(workflow: SavedWorkflow): Promise<void> {
	published.push(workflow);
	await n8n.activate(workflow);
}

/** The example batch-sender, published. */
class Batches {
	private constructor(
		readonly store: OwnStore,
		readonly workflow: SavedWorkflow,
	) {}

	static async open(store: OwnStore, parameters: NodeParameters = {}): Promise<Batches> {
		const workflow = await importCopy('batch-sender', store, { parameters: { Webhook: { path: store.table }, ...parameters } });
		await publish(workflow);
		return new Batches(store, workflow);
	}

	/** What the sender is answered: the status and the body. */
	async send(body: unknown): Promise<{ status: number; body: unknown }> {
		return await this.post(JSON.stringify(body), 'application/json');
	}

	async post(body: string, contentType: string): Promise<{ status: number; body: unknown }> {
		const { status, text } = await sendToWebhook(this.store.table, body, { 'content-type': contentType });
		return { status, body: text === '' ? null : JSON.parse(text) };
	}

	async lastExecution(): Promise<Execution> {
		return await n8n.latestExecution(this.workflow);
	}
}

/** Events with an email address that is theirs alone. */
function newEvents(count: number): { email: string; events: LeadEvent[] } {
	const mark = randomUUID().slice(0, 8);
	const email = `lead-${mark}@example.com`;
	const events = Array.from({ length: count }, (_, place): LeadEvent => ({ id: `evt-${mark}-${String(place).padStart(3, '0')}`, type: 'lead.created', lead: { email, name: `Lead ${place}` } }));
	return { email, events };
}

/** The delivery IDs for which leads are at the destination: twice, where there are two leads. */
async function leadsWith(email: string): Promise<string[]> {
	return (await destination.leads({ email })).map(({ deliveryId }) => deliveryId).sort();
}

const idsOf = (events: LeadEvent[]) => events.map(({ id }) => id);
const allAre = (events: LeadEvent[], state: string) => Object.fromEntries(events.map(({ id }) => [id, state]));

describe('batch-sender', () => {
	let store: OwnStore;
	let batches: Batches;

	beforeAll(async () => {
		store = await OwnStore.open();
		batches = await Batches.open(store);
	});

	afterEach(async () => {
		await database.query(`TRUNCATE ${store.table}`);
	});

	test('new events, a copy in the same list, a known one, and what has no usable ID: each its own way, one answer, and the refused ones are kept', async () => {
		const { email, events } = newEvents(3);
		const [known, one, two] = events;
		expect(await batches.send([known])).toEqual({ status: 200, body: { events: 1, refused: 0, sendAgain: 0 } });

		const { id: _missing, ...nameless } = two;
		const answer = await batches.send([one, nameless, one, known, { ...two, id: 1.5 }, 'no object', null, two]);
		expect(answer).toEqual({ status: 400, body: { events: 8, refused: 4, sendAgain: 0 } });
		expect(await store.states()).toEqual(allAre(events, 'completed 1'));
		expect(await leadsWith(email)).toEqual(idsOf(events));
		for (const lead of await destination.leads({ email })) {
			const { rows } = await database.query(`SELECT outcome_reference AS reference FROM ${store.table} WHERE delivery_id = $1`, [lead.deliveryId]);
			expect(rows).toEqual([{ reference: lead.id }]);
		}

		const execution = await batches.lastExecution();
		expect([execution.status, execution.errorMessage]).toEqual(['error', expect.stringContaining('4 of 8 events were refused (missing_delivery_id, invalid_delivery_id)')]);
		expect(itemsOf(execution, 'Idempotent Claim', OPERATIONAL_ERROR).map(({ body }) => body)).toEqual([nameless, { ...two, id: 1.5 }, 'no object', null]);
		expect(itemsOf(execution, 'Idempotent Claim', KNOWN_DUPLICATE).map(({ claim }) => (claim as { reason: string }).reason)).toEqual(['in_progress', 'completed']);
		expect(execution.runData['One Answer']).toHaveLength(1);
	});

	test('some events fail: 503, and the whole list is sent again; what is done is not repeated, what failed is', async () => {
		const { email, events } = newEvents(3);
		await batches.send(events.slice(0, 1));
		await destination.behave('refuse');
		expect(await batches.send(events)).toEqual({ status: 503, body: { events: 3, refused: 0, sendAgain: 2 } });
		await destination.behave('work');
		expect((await batches.lastExecution()).status).toBe('success');
		const [done, ...failed] = events;
		expect(await store.states()).toEqual({ ...allAre([done], 'completed 1'), ...allAre(failed, 'retryable_failure 1') });

		expect(await batches.send(events)).toMatchObject({ status: 503 });
		expect(await destination.calls(email)).toBe(3);

		await store.alter(RETRY_DUE, idsOf(failed));
		expect(await batches.send(events)).toEqual({ status: 200, body: { events: 3, refused: 0, sendAgain: 0 } });
		expect(await store.states()).toEqual({ ...allAre([done], 'completed 1'), ...allAre(failed, 'completed 2') });
		expect(await leadsWith(email)).toEqual(idsOf(events));
	});

	test('an event that the destination never takes: its neighbours are done, and the sender need not repeat the list for ever', async () => {
		const { email, events } = newEvents(2);
		const poison = { id: `${events[0].id}-poison`, type: 'lead.created' };
		const list = [events[0], poison, events[1]];
		for (let attempt = 1; attempt <= 5; attempt++) {
			const needsReview = attempt === 5;
			expect(await batches.send(list)).toEqual({ status: 503, body: { events: 3, refused: 0, sendAgain: 1 } });
			expect((await store.states())[poison.id]).toBe(needsReview ? 'needs_review 5' : `retryable_failure ${attempt}`);
			await store.alter(RETRY_DUE, [poison.id]);
		}
		expect(await batches.send(list)).toEqual({ status: 200, body: { events: 3, refused: 0, sendAgain: 0 } });
		expect(await leadsWith(email)).toEqual(idsOf(events));
	});

	test('lost answers are uncertain, and are not sent again', async () => {
		const { email, events } = newEvents(2);
		await destination.behave('loseAnswer');
		expect(await batches.send(events)).toMatchObject({ status: 200 });
		await destination.behave('work');
		expect(await batches.send(events)).toMatchObject({ status: 200 });
		expect(await store.states()).toEqual(allAre(events, 'outcome_uncertain 1'));
		expect(await leadsWith(email)).toEqual(idsOf(events));
	});

	test('200 events, sent twice at the same moment: 200 leads', async () => {
		const { email, events } = newEvents(200);
		const all = { events: 200, refused: 0, sendAgain: 0 };
		expect(await Promise.all([batches.send(events), batches.send(events)])).toEqual([{ status: 200, body: all }, { status: 200, body: all }]);
		await until('both copies are through', 60, async () => !(await Promise.all((await n8n.executionIds(batches.workflow)).map(async (id) => (await n8n.finishedExecution(id)).status))).includes('running'));
		expect(await store.states()).toEqual(allAre(events, 'completed 1'));
		expect(await leadsWith(email)).toEqual(idsOf(events));
		const { rows } = await database.query(`SELECT delivery_id AS "deliveryId", outcome_reference AS id FROM ${store.table} ORDER BY 1`);
		expect((await destination.leads({ email })).map(({ deliveryId, id }) => ({ deliveryId, id })).sort((one, other) => one.deliveryId.localeCompare(other.deliveryId))).toEqual(rows);
	});

	test('an empty list is answered 200', async () => {
		expect(await batches.send([])).toEqual({ status: 200, body: null });
	});

	test.each([
		['one event', JSON.stringify(newEvents(1).events[0]), 'application/json'],
		['a text', 'evt_1,evt_2', 'text/plain'],
		['a form', 'id=evt_1', 'application/x-www-form-urlencoded'],
	])('what is no list is answered 400, with words: %s', async (_what, body, contentType) => {
		expect(await batches.post(body, contentType)).toEqual({ status: 400, body: { message: 'The body must be a JSON array of events.' } });
		expect(await store.ids()).toEqual([]);
	});

	test('the claim store is away: 503 for the list, whatever is in it, and nothing is sent on', async () => {
		const { email, events } = newEvents(2);
		const away = await Batches.open(await OwnStore.open(AWAY));
		expect(await away.send([...events, { type: 'lead.created' }])).toEqual({ status: 503, body: { events: 3, refused: 0, sendAgain: 3 } });
		expect(await destination.calls(email)).toBe(0);
	});

	describe('while the destination hangs', () => {
		/** Sends a list of which nothing is answered until its time-out, and does something meanwhile. */
		async function meanwhile(own: OwnStore, list: unknown[], first: string, act: () => Promise<void>) {
			const hanging = await Batches.open(own, { 'Create Lead': { options: { timeout: 4000 } } });
			await destination.behave('hang');
			const answer = hanging.send(list);
			await until('the list is claimed', 30, async () => (await own.exists()) && (await own.states())[first] === 'processing 1');
			await act();
			return { answer: await answer, execution: await hanging.lastExecution() };
		}

		test('a claim is taken over by somebody else: recorded, stale and refused together are one answer', async () => {
			const own = await OwnStore.open();
			const { events } = newEvents(2);
			const { answer, execution } = await meanwhile(own, [...events, { type: 'lead.created' }], events[0].id, async () => {
				await own.alter(`owner_token = 'somebody-else', version = 2`, [events[0].id]);
			});
			expect(answer).toEqual({ status: 400, body: { events: 3, refused: 1, sendAgain: 0 } });
			expect(await own.states()).toEqual({ ...allAre([events[0]], 'processing 1'), ...allAre([events[1]], 'outcome_uncertain 1') });
			expect(['All Outcomes', 'All Events', 'One Answer'].map((name) => execution.runData[name].length)).toEqual([1, 1, 1]);
		});

		test('the store goes away: outcomes that cannot be recorded are 503', async () => {
			const own = await OwnStore.open();
			const { events } = newEvents(2);
			const { answer } = await meanwhile(own, events, events[0].id, async () => {
				await database.query(`DROP TABLE ${own.table}`);
			});
			expect(answer).toEqual({ status: 503, body: { events: 2, refused: 0, sendAgain: 2 } });
		});
	});
});

describe('housekeeping', () => {
	const SECONDS_WITH_RETRIES = 90;
	const IDLE = { needsReview: 0, outcomeUncertain: 0, leasesExpired: 0, unfinishedWithoutPayload: 0, unfinished: 0, oldestUnfinishedAt: null, unfinishedBySource: [] };

	let store: OwnStore;
	let batches: Batches;
	let workflow: SavedWorkflow;

	beforeAll(async () => {
		store = await OwnStore.open();
		batches = await Batches.open(store);
		workflow = await importCopy('housekeeping', store);
	});

	afterEach(async () => {
		await database.query(`TRUNCATE ${store.table}`);
	});

	/** Starts it by hand, and gives what it did and whom it told. */
	async function keepHouse(house = workflow): Promise<{ execution: Execution; alerts: Array<Record<string, unknown>> }> {
		const { executionId } = await n8n.runManually(house, 'Every Night');
		const execution = await n8n.finishedExecution(String(executionId), SECONDS_WITH_RETRIES);
		return { execution, alerts: await alertsOf(execution) };
	}

	async function alertsOf({ id }: Execution): Promise<Array<Record<string, unknown>>> {
		return (await destination.alerts()).filter(({ whereToLook }) => String(whereToLook).includes(`execution ${id} of`));
	}

	/** So many completed claims, by real deliveries. */
	async function completed(count: number): Promise<{ email: string; ids: string[] }> {
		const { email, events } = newEvents(count);
		expect(await batches.send(events)).toMatchObject({ status: 200 });
		return { email, ids: idsOf(events) };
	}

	const PAST_RETENTION = `purge_after = now() - interval '1 second'`;
	const NEEDS_REVIEW = `state = 'needs_review', lease_expires_at = NULL`;
	const IS_UNCERTAIN = `state = 'outcome_uncertain', lease_expires_at = NULL`;
	const HAS_NO_PAYLOAD = 'payload_complete = false';

	/** Makes unfinished claims of them, at work at this moment but for these changes. */
	async function unfinished(ids: string[], but?: string): Promise<void> {
		await store.alter(`state = 'processing', lease_expires_at = now() + interval '5 minutes', purge_after = NULL, payload_complete = true`, ids);
		if (but !== undefined) await store.alter(but, ids);
	}

	test('what is past its retention is forgotten, and nothing else; where nothing is stuck nobody is told', async () => {
		const { ids } = await completed(6);
		const [past, pastTest, soon, atWork, notDone, kept] = ids;
		await store.alter(PAST_RETENTION, [past]);
		await store.alter(`environment = 'test', state = 'needs_review', ${PAST_RETENTION}`, [pastTest]);
		await store.alter(`purge_after = now() + interval '1 hour'`, [soon]);
		await unfinished([atWork]);
		await unfinished([notDone], `${PAST_RETENTION}, first_seen_at = now() - interval '59 minutes'`);

		const { execution, alerts } = await keepHouse();
		expect(execution.status).toBe('success');
		expect(itemsOf(execution, 'Purge Past Retention', 0)).toEqual([{ purge: 'pastRetention', dryRun: false, claims: 2, live: 1, test: 1, limitReached: false }]);
		expect(await store.ids()).toEqual([soon, atWork, notDone, kept]);
		expect(alerts).toEqual([]);
		expect(execution.runData['Send Alert']).toBeUndefined();
	});

	test('what is stuck is told in numbers, with its age and where to look, and without a delivery', async () => {
		const { email, ids } = await completed(8);
		const [past, review, otherReview, uncertain, expired, withoutPayload, ...fine] = ids;
		await store.alter(PAST_RETENTION, [past]);
		await unfinished([review, otherReview], `${NEEDS_REVIEW}, first_seen_at = now() - interval '30 hours'`);
		await unfinished([uncertain], IS_UNCERTAIN);
		await unfinished([expired], LEASE_OVER);
		await unfinished([withoutPayload], HAS_NO_PAYLOAD);
		const { rows } = await database.query<{ oldest: Date }>(`SELECT min(first_seen_at) AS oldest FROM ${store.table}`);

		const { alerts } = await keepHouse();
		expect(await store.ids()).toEqual([review, otherReview, uncertain, expired, withoutPayload, ...fine]);
		expect(alerts).toEqual([
			{
				title: 'Claim store: something is stuck',
				needsReview: 2,
				outcomeUncertain: 1,
				leasesExpired: 1,
				unfinishedWithoutPayload: 1,
				unfinished: 5,
				oldestUnfinishedAt: aText,
				oldestUnfinishedHours: 30,
				unfinishedBySource: ['needs_review 2', 'outcome_uncertain 1', 'processing 2'].map((text) => {
					const [state, claims] = text.split(' ');
					return { source: 'example-crm', state, claims: Number(claims), oldestAt: aText };
				}),
				purged: 1,
				purgeLimitReached: false,
				purgeError: null,
				countError: null,
				whereToLook: expect.stringMatching(/Operator Desk.*Claim Store.*"housekeeping on upkeep_/) as string,
			},
		]);
		expect(new Date(String(alerts[0].oldestUnfinishedAt)).getTime()).toBe(rows[0].oldest.getTime());
		const told = JSON.stringify(alerts);
		for (const secret of [...ids, email, 'Lead 1', 'lead.created']) expect(told).not.toContain(secret);
	});

	test.each([
		['needs review', NEEDS_REVIEW],
		['is uncertain', IS_UNCERTAIN],
		['has lost its owner', LEASE_OVER],
		['has no stored payload', HAS_NO_PAYLOAD],
		['is older than an hour', `first_seen_at = now() - interval '61 minutes'`],
	])('one claim that %s is enough for an alert', async (_what, changes) => {
		const { ids } = await completed(1);
		await unfinished(ids, changes);
		const { alerts } = await keepHouse();
		expect(alerts).toMatchObject([{ title: 'Claim store: something is stuck', unfinished: 1 }]);
	});

	test('more is past its retention than the limit: the next runs go on', async () => {
		const limited = await importCopy('housekeeping', store, { parameters: { 'Purge Past Retention': { limit: 2 } } });
		const { ids } = await completed(5);
		await store.alter(PAST_RETENTION, ids);
		const left = [];
		for (let run = 0; run < 3; run++) {
			const { execution } = await keepHouse(limited);
			const [{ limitReached }] = itemsOf(execution, 'Purge Past Retention', 0);
			left.push([(await store.ids()).length, limitReached]);
		}
		expect(left).toEqual([[3, true], [1, true], [0, false]]);
	});

	test('the database user may not delete: that is told, and the count all the same', async () => {
		const own = await OwnStore.open();
		const { events } = newEvents(2);
		await (await Batches.open(own)).send(events);
		await own.alter(PAST_RETENTION, idsOf(events));
		await database.query(`REVOKE DELETE ON ${own.table} FROM CURRENT_USER`);

		const { execution, alerts } = await keepHouse(await importCopy('housekeeping', own));
		expect(execution.status).toBe('success');
		expect(alerts).toEqual([
			expect.objectContaining({ title: 'Claim store: housekeeping failed', ...IDLE, purged: null, countError: null, purgeError: expect.stringMatching(/lacks the right DELETE/) as string }),
		]);
		expect(await own.ids()).toEqual(idsOf(events));
	});

	test('the claim store is away: that is told', async () => {
		const away = await OwnStore.open(AWAY);
		const { execution, alerts } = await keepHouse(await importCopy('housekeeping', away));
		expect(execution.status).toBe('success');
		const reason = expect.stringContaining('No connection to PostgreSQL') as string;
		expect(alerts).toEqual([expect.objectContaining({ title: 'Claim store: housekeeping failed', purgeError: reason, countError: reason, needsReview: null, oldestUnfinishedHours: null })]);
	});

	test('the alert cannot be sent: the execution fails', async () => {
		const { ids } = await completed(1);
		await unfinished(ids, NEEDS_REVIEW);
		const { execution } = await keepHouse(await importCopy('housekeeping', store, { parameters: { 'Send Alert': { url: 'http://127.0.0.1:9/alerts' } } }));
		expect(execution.status).toBe('error');
	});

	test('by its schedule it does the same', async () => {
		const { ids } = await completed(1);
		await unfinished(ids, NEEDS_REVIEW);
		const often = await importCopy('housekeeping', store, { parameters: { 'Every Night': { rule: { interval: [{ field: 'seconds', secondsInterval: 5 }] } } } });
		await publish(often);
		await until('it has run', 60, async () => (await n8n.executionIds(often)).length > 0);
		await n8n.deactivate(often);
		const [first] = (await n8n.executionIds(often)).sort((one, other) => Number(one) - Number(other));
		const execution = await n8n.finishedExecution(first);
		expect([execution.mode, execution.status]).toEqual(['trigger', 'success']);
		expect(await alertsOf(execution)).toMatchObject([{ needsReview: 1 }]);
	});
});

describe('Imported into the editor', () => {
	let editor: Editor;

	beforeAll(async () => {
		editor = await Editor.open();
	});

	afterAll(async () => {
		await editor?.close();
	});

	test.each(['batch-sender', 'housekeeping'])('%s opens whole, with nothing to mend but the credential', async (name) => {
		const { id } = await importCopy(name, await OwnStore.open(), { edit: (asItIs) => asItIs });
		await editor.page.setViewportSize({ width: 2600, height: 1500 });
		await editor.openWorkflow(id);
		await editor.fitToView();
		expect(await editor.part('node-issues').count()).toBe(0);
		await editor.pictureOfWorkflow(`${name} example`);
	});
});

test('every node of every example is of a type and a version that n8n has', async () => {
	for (const example of await exampleNames()) {
		const { nodes } = await readExample(example);
		const used = nodes.map(({ type, typeVersion }) => ({ name: type, version: typeVersion }));
		const known = await n8n.rest.post<Array<{ name: string; version: number | number[] }>>('/rest/node-types', { nodeInfos: used });
		const missing = used.filter(({ name, version }) => !known.some((type) => name.endsWith(`.${type.name}`) && [type.version].flat().includes(version)));
		expect({ example, missing }).toEqual({ example, missing: [] });
	}
});
