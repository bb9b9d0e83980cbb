import { randomUUID } from 'node:crypto';
import { readExample } from '../../sandbox/setup';
import { sandboxAddress } from './support/address';
import { ClaimTable } from './support/claimTable';
import { Editor } from './support/editor';
import { createCopy } from './support/exampleCopy';
import { N8n } from './support/n8n';
import { node } from './support/workflow';

let editor: Editor;
/** As n8n named the credential that was made in the editor. */
let credentialName: string;

beforeAll(async () => {
	editor = await Editor.open();
});

afterAll(async () => {
	await editor?.close();
});

// What went wrong is seen best where it went wrong.
let tests = 0;
afterEach(async () => {
	await editor?.screenshot(`after editor test ${++tests}`);
});

describe('The credential, made and tested in the editor', () => {
	beforeAll(async () => {
		await editor.newCredential('claim store', 'Claim Store (Postgres) API');
		await editor.fill('host', '127.0.0.1');
		await editor.fill('database', sandboxAddress().claimStoreDatabase.database);
		await editor.fill('user', sandboxAddress().claimStoreDatabase.user);
	});

	/** Waits until the red box, unfolded, gives this reason. */
	async function expectProblem(reason: RegExp): Promise<void> {
		const dialog = editor.part('credential-edit-dialog');
		await dialog.getByText('Couldn’t connect with these settings').waitFor();
		const unfold = dialog.getByText('More details');
		if (await unfold.isVisible()) await unfold.click();
		await dialog.getByText(reason).waitFor();
	}

	test('an unreachable port: says so, and thinks of Docker', async () => {
		await editor.fill('port', '1');
		await editor.saveCredential();
		await expectProblem(/^No connection to PostgreSQL at 127\.0\.0\.1:1 .*In Docker, use the service's name, not localhost/);
		await editor.screenshot('credential, unreachable port');
	});

	test('a wrong password: says that the login was refused, and does not repeat it', async () => {
		await editor.fill('port', String(sandboxAddress().claimStorePort));
		await editor.fill('password', 'not-the-password');
		await editor.saveCredential();
		await expectProblem(/refused the login of "claim_store".*Check user and password/);
		expect(await editor.part('credential-edit-dialog').innerText()).not.toContain('not-the-password');
		await editor.screenshot('credential, wrong password');
	});

	test('the right values: success', async () => {
		await editor.fill('password', sandboxAddress().claimStoreDatabase.password);
		await editor.saveCredential();
		await editor.part('credentials-config-container-test-success').getByText('Connection tested successfully').waitFor();
		await editor.part('editCredential-modal').screenshot({ path: editor.pathOf('credential, success') });
		credentialName = await editor.credentialName();
	});
});

describe('The nodes on the canvas', () => {
	const deliveryId = `evt_${randomUUID().slice(0, 8)}`;

	beforeAll(async () => {
		const n8n = new N8n();
		const { id } = await n8n.create({
			name: 'Try the Claim Nodes',
			nodes: [
				node('manualTrigger', 1, {}, 'Manual Trigger'),
				node('set', 3.4, { mode: 'raw', jsonOutput: JSON.stringify({ id: deliveryId, email: 'lead@example.com' }), options: {} }, 'Edit Fields'),
			],
			wires: ['Manual Trigger > Edit Fields'],
		});
		await editor.openWorkflow(id);
	});

	test('the node panel finds Idempotent Claim by what it is for', async () => {
		await editor.addBehind('Edit Fields');
		for (const words of ['idempotency', 'duplicate', 'dedupe', 'deduplicate', 'exactly once', 'webhook retry', 'redelivery', 'lock', 'postgres']) {
			await editor.part('node-creator-search-bar').fill(words);
			await editor.part('node-creator-item-name').getByText('Idempotent Claim', { exact: true }).waitFor();
			await editor.screenshot(`node panel, ${words}`);
		}
	});

	test('Idempotent Claim is added, set up, and shows its three outputs', async () => {
		await editor.part('node-creator-item-name').getByText('Idempotent Claim', { exact: true }).click();
		await editor.page.getByText('Claim a delivery').click();
		await editor.part('ndv').waitFor();
		await editor.chooseCredential(credentialName);
		await editor.fill('source', 'example-shop');
		await editor.fillExpression('deliveryId', '{{ $json.id }}');
		await editor.screenshot('Idempotent Claim, parameters');
		await editor.closeNode();

		expect(await editor.outputLabels('Idempotent Claim')).toEqual(['New Claim', 'Known Duplicate', 'Operational Error']);
		await editor.fitToView();
		await editor.screenshot('Idempotent Claim, unconnected outputs');
	});

	test('Complete Claim is added behind New Claim', async () => {
		await editor.addBehind('Idempotent Claim');
		await editor.part('node-creator-search-bar').fill('complete claim');
		await editor.part('node-creator-item-name').getByText('Complete Claim', { exact: true }).click();
		await editor.page.getByText('Add to workflow').click();
		await editor.part('ndv').waitFor();
		await editor.chooseCredential(credentialName);
		await editor.fillExpression('outcomeReference', 'lead-of-{{ $json.id }}');
		await editor.screenshot('Complete Claim, parameters');
		await editor.closeNode();
		expect(await editor.outputLabels('Complete Claim')).toEqual(['Recorded', 'Stale Claim', 'Operational Error']);
	});

	test('the first run is a New Claim and is recorded as completed', async () => {
		await runWorkflow();
		await editor.fitToView();
		await editor.screenshot('first run, canvas');

		const output = await openOutput('New Claim');
		await output.getByText('first_delivery').first().waitFor();
		await editor.screenshot('first run, Idempotent Claim');
		await editor.closeNode();

		const claims = new ClaimTable();
		const rows = (await claims.rows('example-shop')).filter((row) => row.deliveryId === deliveryId);
		expect(rows).toMatchObject([{ environment: 'test', state: 'completed', reference: `lead-of-${deliveryId}` }]);
		await claims.close();
	});

	test('the second run is a Known Duplicate, and a hint says how to try again', async () => {
		await runWorkflow();
		await editor.screenshot('second run, canvas');

		const output = await openOutput('Known Duplicate');
		await output.getByText('duplicate', { exact: true }).first().waitFor();
		await output.getByText(`lead-of-${deliveryId}`).first().waitFor();
		expect(await editor.part('node-hint').allInnerTexts()).toEqual([expect.stringMatching(/send a new ID.*Always New/s)]);
		await editor.screenshot('second run, Idempotent Claim');
		await editor.closeNode();
	});

	/** Clicks "Execute workflow", and waits until the editor says that it is done. */
	async function runWorkflow(): Promise<void> {
		await editor.dismissNotices();
		await editor.part('execute-workflow-button').click();
		await editor.page.getByText('Workflow executed successfully').waitFor();
	}

	async function openOutput(label: string) {
		await editor.openNode('Idempotent Claim');
		const output = editor.part('output-panel');
		await output.getByText(`${label} Branch`).click();
		return output;
	}
});

describe('The guarded-webhook example', () => {
	test('opens whole when it is imported, with nothing to mend but the credential', async () => {
		for (const { type, credentials } of (await readExample('guarded-webhook')).nodes) {
			expect({ type, credentials }).toEqual({ type, credentials: undefined });
		}
		const { id } = await createCopy(new N8n(), 'guarded-webhook', 'Imported Example', { edit: (text) => text });

		await editor.page.setViewportSize({ width: 2600, height: 1500 });
		await editor.openWorkflow(id);
		await editor.fitToView();
		expect(await editor.part('node-issues').count()).toBe(0);
		await editor.pictureOfWorkflow('guarded-webhook example');
	});
});
