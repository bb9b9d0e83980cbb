import { randomUUID } from 'node:crypto';
import { DestinationClient } from '../../sandbox/destination';
import { newEvent, signed } from '../../sandbox/sender';
import { countBy } from '../support/counting';
import { sandboxAddress } from './support/address';
import { ClaimTable } from './support/claimTable';
import { itemsOf, N8n } from './support/n8n';
import { sendToWebhook } from './support/webhookCall';

const DELIVERIES = 20;
const COPIES = 50;
const EXECUTIONS_READ_AT_ONCE = 10;

/** The example's source. */
const SOURCE = 'example-crm';
const OUTPUTS = ['New Claim', 'Known Duplicate', 'Operational Error'];

test(`${COPIES} simultaneous copies of ${DELIVERIES} deliveries: ${DELIVERIES} actions, and success for every copy`, async () => {
	const { workflows, destinationUrl } = sandboxAddress();
	const workflow = workflows['guarded-webhook'];
	const n8n = new N8n();
	const newestBefore = await n8n.newestExecutionId();
	const prefix = `evt_${randomUUID().slice(0, 8)}_`;
	const deliveryIds = Array.from({ length: DELIVERIES }, (_, number) => prefix + String(number).padStart(2, '0'));

	const begun = Date.now();
	const answers: string[] = [];
	// One delivery after the other: more requests at once would test n8n's own connections to its database.
	for (const deliveryId of deliveryIds) {
		answers.push(...(await Promise.all(Array.from({ length: COPIES }, () => deliver(workflow.webhookUrl, deliveryId)))));
	}
	const seconds = (Date.now() - begun) / 1000;

	expect(countBy(answers)).toEqual({ 200: DELIVERIES * COPIES });

	const destination = new DestinationClient(destinationUrl);
	const leads = await Promise.all(deliveryIds.map(async (deliveryId) => await destination.leads({ deliveryId })));
	expect(leads.map(({ length }) => length)).toEqual(deliveryIds.map(() => 1));

	const claims = new ClaimTable();
	const rows = (await claims.rows(SOURCE)).filter(({ deliveryId }) => deliveryId.startsWith(prefix));
	await claims.close();
	expect(rows.map(({ deliveryId, environment, state, attempt, reference }) => ({ deliveryId, environment, state, attempt, reference }))).toEqual(
		deliveryIds.map((deliveryId, number) => ({ deliveryId, environment: 'live', state: 'completed', attempt: 1, reference: leads[number][0].id })),
	);

	const executions = Array.from({ length: (await n8n.newestExecutionId()) - newestBefore }, (_, number) => String(newestBefore + 1 + number));
	expect(executions).toHaveLength(DELIVERIES * COPIES);
	const outputs = countBy(await outputsTaken(n8n, executions));
	expect(outputs).toEqual({ 'New Claim': DELIVERIES, 'Known Duplicate': DELIVERIES * (COPIES - 1) });
	console.log(`${answers.length} requests in ${seconds.toFixed(1)} s: ${JSON.stringify(outputs)}`);
});

/** The answer's status; where it is no success, with the reason. */
async function deliver(url: string, deliveryId: string): Promise<string> {
	const { body, headers } = signed(newEvent(deliveryId));
	const { status, text } = await sendToWebhook(url, body, headers);
	return status === 200 ? String(status) : `${status}: ${text}`;
}

/** By which output of Idempotent Claim the delivery left, in each of the executions. */
async function outputsTaken(n8n: N8n, executionIds: string[]): Promise<string[]> {
	const taken: string[] = [];
	const left = [...executionIds];
	const readOn = async () => {
		for (let id = left.pop(); id !== undefined; id = left.pop()) {
			const execution = await n8n.finishedExecution(id);
			taken.push(...OUTPUTS.flatMap((name, output) => itemsOf(execution, 'Idempotent Claim', output).map(() => name)));
		}
	};
	await Promise.all(Array.from({ length: EXECUTIONS_READ_AT_ONCE }, readOn));
	return taken;
}
