import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import path from 'node:path';
import { EXAMPLES_FOLDER } from '../../sandbox/settings';
import { sandboxAddress } from './support/address';
import { ClaimTable } from './support/claimTable';
import { Editor } from './support/editor';
import { itemsOf, N8n, type SavedWorkflow } from './support/n8n';
import { sendToWebhook } from './support/webhookCall';

/**
 * The README's "Five minutes to a guarded GitHub webhook", step by step, in the editor. What GitHub would send comes from here,
 * signed with the secret that was typed in.
 */

const REPOSITORY_ID = String(Math.floor(Math.random() * 1_000_000_000));
const NEW_CLAIM = 0;
const KNOWN_DUPLICATE = 1;
const SECRET = randomBytes(24).toString('hex');
const { workflows, claimStoreDatabase, claimStorePort, n8nUrl } = sandboxAddress();

const n8n = new N8n();
const claims = new ClaimTable();
let editor: Editor;
const credentials = { store: '', crypto: '' };
/** The ID of the workflow that was made. */
let imported = '';

beforeAll(async () => {
	// The sandbox has it published already: one address, one workflow.
	await n8n.deactivate(workflows['github-webhook']);
	editor = await Editor.open();
});

// What went wrong is seen best where it went wrong.
let tests = 0;
afterEach(async () => {
	await editor?.screenshot(`after GitHub test ${++tests}`);
});

afterAll(async () => {
	if (imported) await n8n.deactivate({ id: imported });
	await n8n.activate(await n8n.rest.get<SavedWorkflow>(`/rest/workflows/${workflows['github-webhook'].id}`));
	await claims.close();
	await editor?.close();
});

test('step 2: a credential for the claim store, tested when it is saved', async () => {
	await editor.newCredential('claim store', 'Claim Store (Postgres) API');
	await editor.fill('host', claimStoreDatabase.host);
	await editor.fill('port', String(claimStorePort));
	await editor.fill('database', claimStoreDatabase.database);
	await editor.fill('user', claimStoreDatabase.user);
	await editor.fill('password', claimStoreDatabase.password);
	await editor.saveCredential();
	await editor.part('credentials-config-container-test-success').getByText('Connection tested successfully').waitFor();
	credentials.store = await editor.credentialName();
	await editor.screenshot('GitHub 2, credential');
});

test('step 3: a credential with the secret', async () => {
	await editor.newCredential('crypto', 'Crypto');
	await editor.fill('hmacSecret', SECRET);
	await editor.saveCredential();
	await editor.part('credential-delete-button').waitFor();
	credentials.crypto = await editor.credentialName();
	await editor.screenshot('GitHub 3, secret');
});

test('step 4: the example, imported from its file; the credentials are chosen', async () => {
	await editor.page.goto('/workflow/new');
	await editor.part('workflow-menu').first().click();
	await editor.screenshot('GitHub 4, menu');
	await editor.part('workflow-import-input').setInputFiles(path.join(EXAMPLES_FOLDER, 'github-webhook.json'));
	await editor.node('Idempotent Claim').waitFor();
	for (const [name, credential] of [['Sign the Body', credentials.crypto], ['Idempotent Claim', credentials.store], ['Complete Claim', credentials.store]]) {
		await editor.openNode(name);
		await editor.chooseCredential(credential);
		await editor.screenshot(`GitHub 4, ${name}`);
		await editor.closeNode();
	}
	expect(await editor.part('node-issues').count()).toBe(0);
	await editor.fitToView();
	await editor.screenshot('GitHub 4, canvas');
	await editor.page.setViewportSize({ width: 2000, height: 1100 });
	await editor.fitToView();
	await editor.pictureOfWorkflow('github-webhook example');
	await editor.page.setViewportSize({ width: 1440, height: 900 });
	await editor.fitToView();
});

test('step 5: published, and the address copied', async () => {
	await editor.part('workflow-open-publish-modal-button').click();
	await editor.screenshot('GitHub 5, publish');
	await editor.part('workflow-publish-button').click();
	await editor.page.getByText('Workflow published').waitFor();
	await editor.screenshot('GitHub 5, published');
	await editor.page.getByRole('button', { name: 'Got it' }).click();
	imported = new URL(editor.page.url()).pathname.split('/')[2];
	await editor.openNode('Webhook');
	await editor.part('ndv').getByText('Production URL', { exact: true }).first().click();
	await editor.part('ndv').getByText(`${n8nUrl}/webhook/github`).first().waitFor();
	await editor.screenshot('GitHub 5, address');
	await editor.closeNode();
});

describe('step 6: at GitHub', () => {
	const ping = randomUUID();
	const issue = randomUUID();
	const forged = randomUUID();
	const recorded = async () => (await claims.rows('github', [ping, issue, forged])).map(({ deliveryId, state, attempt }) => ({ deliveryId, state, attempt }));

	test('the ping, and its redelivery: both 200, one claim, completed', async () => {
		expect(await deliver(ping, 'ping', { zen: 'Keep it simple.' })).toBe(200);
		expect(await recorded()).toEqual([{ deliveryId: ping, state: 'completed', attempt: 1 }]);
		expect(await deliver(ping, 'ping', { zen: 'Keep it simple.' })).toBe(200);
		expect(await recorded()).toEqual([{ deliveryId: ping, state: 'completed', attempt: 1 }]);
	});

	test('another event is another claim; what GitHub did not sign is refused, and claims nothing', async () => {
		expect(await deliver(issue, 'issues', { action: 'opened', issue: { number: 42, title: 'Something is odd' } })).toBe(200);
		expect(await deliver(forged, 'issues', { action: 'opened' }, 'not-the-secret')).toBe(401);
		expect((await recorded()).map(({ deliveryId }) => deliveryId)).toEqual([ping, issue].sort());
	});

	test('the executions show which way each went', async () => {
		await editor.part('radio-button-executions').click();
		const [first, redelivery] = (await n8n.startedExecutionIds({ id: imported })).sort((one, other) => Number(one) - Number(other));
		expect(itemsOf(await n8n.finishedExecution(first), 'Idempotent Claim', NEW_CLAIM)).toMatchObject([{ claim: { reason: 'first_delivery' } }]);
		expect(itemsOf(await n8n.finishedExecution(redelivery), 'Idempotent Claim', KNOWN_DUPLICATE)).toMatchObject([{ claim: { reason: 'completed' } }]);
		await editor.page.goto(`/workflow/${imported}/executions/${redelivery}`);
		await editor.page.getByText('Succeeded').nth(4).waitFor();
		await editor.screenshot('GitHub 6, the redelivery');
	});
});

/** @returns the status that GitHub is told */
async function deliver(id: string, event: string, payload: object, secret = SECRET): Promise<number> {
	const body = JSON.stringify({ ...payload, repository: { id: Number(REPOSITORY_ID), full_name: 'example/shop' } });
	const { status } = await sendToWebhook(`${n8nUrl}/webhook/github`, body, {
		'content-type': 'application/json',
		'x-github-delivery': id,
		'x-github-event': event,
		'x-github-hook-installation-target-id': REPOSITORY_ID,
		'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
	});
	return status;
}
