import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { Pool } from 'pg';
import type { Named } from '../../sandbox/setup';
import { LEASE_OVER, RETRY_DUE } from '../support/timePassed';
import { order, sandboxAddress } from './support/address';
import { N8n, type SavedWorkflow } from './support/n8n';
import type { SecondN8nAddress } from './support/secondN8n';
import { Session } from './support/session';
import { until } from './support/until';
import { callWebhook } from './support/webhookCall';
import { claimRecoveryTrigger, completeClaim, idempotentClaim, node, webhook, type PlannedNode, type WorkflowPlan } from './support/workflow';

/**
 * Two n8n that know nothing of each other work off one claim store. Both poll at the same seconds of the clock, for as
 * long as something is due, and the store is slow, so that their looks overlap. What they emit is noted by a server of
 * this test, past the claim table.
 *
 *   TWO_INSTANCES_CLAIMS=1000 npm run test:e2e -- twoInstances   more of it
 */

const SOURCE = `two-instances-${randomUUID().slice(0, 8)}`;
/** Claims for each poll: about what two n8n get done before the next one, on two cores. */
const LIMIT = 20;
/** Where they get less done than that, executions wait inside n8n; their claims must not come back meanwhile. */
const LEASE_SECONDS = 3600;
const SECONDS_TO_START = 300;
const SECONDS_TO_RECOVER = 600;

/** Few, for the time's sake: 1,000 take some two minutes. */
const CLAIMS = Number(process.env.TWO_INSTANCES_CLAIMS ?? 300);
/** More than 5 of 1,000 claims; seen were 27 of them, and 8 of 300. */
const LEAST_MEETINGS = Math.max(2, CLAIMS / 200);

interface Kind {
	/** Of all claims. */
	share: number;
	/** What somebody who broke off has left in the row; without it, the row is as the inbox stored it. */
	left?: string;
	/** How the claim is emitted until it is completed: it fails without effect each time but the last. */
	emitted: string[];
}

const BEGUN = 'version = 2, attempt = 1';
const LEFT_BEHIND = `state = 'processing', ${LEASE_OVER}`;

const KINDS: Record<string, Kind> = {
	received: { share: 0.45, emitted: ['ready, received, version 2, attempt 1'] },
	failsOnce: { share: 0.05, emitted: ['ready, received, version 2, attempt 1', 'ready, retry, version 3, attempt 2'] },
	retryIsDue: { share: 0.2, left: `${BEGUN}, state = 'retryable_failure', ${RETRY_DUE}`, emitted: ['ready, retry, version 3, attempt 2'] },
	takeOver: { share: 0.1, left: `${BEGUN}, ${LEFT_BEHIND}, when_lease_expires = 'takeOver'`, emitted: ['ready, lease_expired, version 3, attempt 2'] },
	leaseOver: { share: 0.15, left: `${BEGUN}, ${LEFT_BEHIND}`, emitted: ['reconcile, outcome_uncertain, version 3, attempt 1'] },
	notDone: { share: 0.05, left: `${BEGUN}, state = 'outcome_uncertain'`, emitted: ['reconcile, outcome_uncertain, version 3, attempt 1', 'ready, retry, version 4, attempt 2'] },
};

const DELIVERIES = Object.entries(KINDS).flatMap(([kind, { share }]) => Array.from({ length: Math.round(CLAIMS * share) }, (_, number) => `${kind}-${String(number).padStart(3, '0')}`));
const emittedOf = (deliveryId: string) => KINDS[deliveryId.split('-')[0]].emitted;

interface Emission {
	by: string;
	deliveryId: string;
	what: string;
}

/**
 * Taking a claim lasts, as on a slow disk, and is noted. Without it a look is over within some milliseconds, and the
 * two n8n never meet.
 */
const SLOW_STORE = `
	CREATE TABLE public.takes (instance text, look xid8, at timestamptz);
	CREATE FUNCTION public.take_slowly() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO public.takes VALUES (NEW.owner_instance_id, pg_current_xact_id(), clock_timestamp());
		PERFORM pg_sleep(0.03);
		RETURN NEW;
	END $$;
	CREATE TRIGGER take_slowly BEFORE UPDATE ON public.idempotent_claims FOR EACH ROW
		WHEN (NEW.source = '${SOURCE}' AND NEW.version > OLD.version) EXECUTE FUNCTION public.take_slowly();`;
const USUAL_STORE = 'DROP TRIGGER IF EXISTS take_slowly ON public.idempotent_claims; DROP FUNCTION IF EXISTS public.take_slowly; DROP TABLE IF EXISTS public.takes';

/** Looks of one n8n that took claims while a look of the other did. */
const MEETINGS = `
	WITH looks AS (SELECT instance, look, min(at) AS begun, max(at) AS ended FROM public.takes GROUP BY instance, look)
	SELECT count(*)::int AS count FROM looks AS one JOIN looks AS other
	    ON one.instance < other.instance AND one.begun < other.ended AND other.begun < one.ended`;

/** In the order in which they came. */
const emissions: Emission[] = [];
let destination: Server;
let store: Pool;
let instances: Array<{ name: string; n8n: N8n; credential: Named }>;
const published: Array<{ n8n: N8n; workflow: SavedWorkflow }> = [];

beforeAll(async () => {
	destination = await openDestination();
	store = new Pool({ ...sandboxAddress().claimStoreDatabase, max: 1 });
	const second = await order<SecondN8nAddress>('second');
	instances = [
		{ name: 'first', n8n: new N8n(), credential: sandboxAddress().credentials.claimStoreApi },
		{ name: 'second', n8n: new N8n(Session.of(second)), credential: second.credentials.claimStoreApi },
	];
}, SECONDS_TO_START * 1000);

afterAll(async () => {
	for (const { n8n, workflow } of published) await n8n.deactivate(workflow);
});
afterAll(async () => {
	await order('leaveSecond');
	await store.query(USUAL_STORE);
	await store.end();
	destination.close();
});

test(`${DELIVERIES.length} due claims, two n8n that poll: each is emitted once per version, by one of them`, async () => {
	await deliver();
	for (const [kind, { left }] of Object.entries(KINDS)) {
		if (left) await store.query(`UPDATE public.idempotent_claims SET ${left} WHERE source = $1 AND delivery_id LIKE $2`, [SOURCE, `${kind}-%`]);
	}
	await store.query(SLOW_STORE);
	const begun = Date.now();
	const recovering = await Promise.all(instances.map(async ({ name, n8n, credential }) => ({ name, n8n, workflow: await publish(n8n, recovery(name, credential)) })));
	await until('every claim is completed', SECONDS_TO_RECOVER, async () => {
		expect(unexpected()).toEqual([]);
		return (await claims('unfinished')).length === 0;
	});
	const seconds = (Date.now() - begun) / 1000;
	// An execution that came too late for its claim ends after it.
	await until('no execution runs any more', 60, async () => {
		const running = await Promise.all(recovering.map(async ({ n8n, workflow }) => await n8n.executionCount(workflow, 'new', 'running')));
		return running.every((count) => count === 0);
	});

	expect(perDelivery(emissions)).toEqual(Object.fromEntries(DELIVERIES.map((id) => [id, emittedOf(id)])));
	// Each was heard of by one execution, which came to its end; there were no others.
	const byEach = recovering.map(({ name }) => emissions.filter(({ by }) => by === name).length);
	expect(await Promise.all(recovering.map(async ({ n8n, workflow }) => await n8n.executionCount(workflow, 'success')))).toEqual(byEach);

	const found = await claims();
	expect(found.map(({ deliveryId, state, version, attempt }) => [deliveryId, state, `version ${version}, attempt ${attempt}`]).sort()).toEqual(
		DELIVERIES.map((id) => [id, 'completed', emittedOf(id).at(-1)?.split(', ').slice(2).join(', ')]).sort(),
	);
	// Otherwise nothing would be proved: each of two n8n has had a fair part of the work, and they have met.
	expect(new Set(found.map(({ instance }) => instance)).size).toBe(2);
	for (const count of byEach) expect(count).toBeGreaterThan(emissions.length / 10);
	const [{ count: meetings }] = (await store.query<{ count: number }>(MEETINGS)).rows;
	expect(meetings).toBeGreaterThan(LEAST_MEETINGS);
	console.log(`${emissions.length} emissions in ${seconds.toFixed(0)} s, ${byEach.join(' and ')} by the two n8n, whose looks overlapped ${meetings} times`);
}, (SECONDS_TO_RECOVER + 120) * 1000);

/** Stores all deliveries in the inbox, by one call. */
async function deliver(): Promise<void> {
	const [{ n8n }] = instances;
	await publish(n8n, {
		name: 'Inbox of two',
		nodes: [webhook(SOURCE, 'lastNode'), node('splitOut', 1, { fieldToSplitOut: 'body.deliveries', options: {} }), idempotentClaim({ operation: 'receive', source: SOURCE })],
		wires: ['Webhook > splitOut', 'splitOut > Idempotent Claim'],
	});
	expect((await callWebhook(SOURCE, { deliveries: DELIVERIES.map((id) => ({ id })) })).status).toBe(200);
	expect((await claims()).map(({ deliveryId, state }) => `${deliveryId} ${state}`).sort()).toEqual(DELIVERIES.map((id) => `${id} received`).sort());
}

/** Trigger → the destination hears what was emitted, and says whether it is done → Complete Claim. */
function recovery(name: string, credential: Named): WorkflowPlan {
	const { port } = destination.address() as AddressInfo;
	const emit = (output: string) => {
		const what = `'${output}, ' + $json.claim.reason + ', version ' + $json.claim.version + ', attempt ' + $json.claim.attempt`;
		const jsonBody = `={{ JSON.stringify({ by: '${name}', deliveryId: $json.claim.deliveryId, what: ${what} }) }}`;
		return node('httpRequest', 4.2, { method: 'POST', url: `http://127.0.0.1:${port}`, sendBody: true, specifyBody: 'json', jsonBody, options: {} }, output);
	};
	const withCredential = (ours: PlannedNode, extra = {}): PlannedNode => ({ ...ours, extra: { ...extra, credentials: { claimStoreApi: credential } } });
	const complete = completeClaim({ outcome: '={{ $json.outcome }}', retryAfterSeconds: 0, reason: 'the destination said so' });
	return {
		name: `Recovery by the ${name} n8n`,
		nodes: [
			withCredential(claimRecoveryTrigger({ source: SOURCE, limit: LIMIT, leaseSeconds: LEASE_SECONDS })),
			emit('ready'),
			emit('reconcile'),
			withCredential(complete, { retryOnFail: true, maxTries: 5, waitBetweenTries: 5000 }),
		],
		wires: ['Claim Recovery Trigger > ready', 'Claim Recovery Trigger:1 > reconcile', 'ready > Complete Claim', 'reconcile > Complete Claim'],
	};
}

async function publish(n8n: N8n, plan: WorkflowPlan): Promise<SavedWorkflow> {
	const workflow = await n8n.publish(plan);
	published.push({ n8n, workflow });
	return workflow;
}

async function openDestination(): Promise<Server> {
	const server = createServer((request, response) => {
		void json(request).then((emission) => {
			const { deliveryId, what } = emission as Emission;
			emissions.push(emission as Emission);
			const fails = emittedOf(deliveryId).slice(0, -1).includes(what);
			response.setHeader('content-type', 'application/json').end(JSON.stringify({ outcome: fails ? 'retryableFailure' : 'completed' }));
		});
	}).listen(0, '127.0.0.1');
	await once(server, 'listening');
	return server;
}

interface Claim {
	deliveryId: string;
	state: string;
	version: number;
	attempt: number;
	/** Whose it was at last. */
	instance: string;
}

async function claims(which: 'all' | 'unfinished' = 'all'): Promise<Claim[]> {
	const { rows } = await store.query<Claim>(
		`SELECT delivery_id AS "deliveryId", state, version, attempt, owner_instance_id AS instance
		   FROM public.idempotent_claims
		  WHERE source = $1 AND ($2 = 'all' OR state <> 'completed')`,
		[SOURCE, which],
	);
	return rows;
}

/** What was emitted of each delivery, in the order in which it came. */
function perDelivery(emitted: Emission[]): Record<string, string[]> {
	const all: Record<string, string[]> = {};
	for (const { deliveryId, what } of emitted) (all[deliveryId] ??= []).push(what);
	return all;
}

/** Deliveries that were emitted otherwise than they should be, so far. */
function unexpected(): Array<[deliveryId: string, emitted: string[]]> {
	return Object.entries(perDelivery(emissions)).filter(([id, emitted]) => emitted.some((what, place) => what !== emittedOf(id)[place]));
}
