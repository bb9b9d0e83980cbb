import path from 'node:path';
import { chromium, type Browser, type Locator, type Page } from 'playwright-core';
import { RESULTS_FOLDER, sandboxAddress } from './address';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const ARGUMENTS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const PATIENCE_MS = 30_000;
/** Pixels around a picture of the canvas. */
const MARGIN = 24;

export async function launchBrowser(): Promise<Browser> {
	return await chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS });
}

/** n8n's editor in a real browser, signed in as the owner. */
export class Editor {
	private constructor(
		private readonly browser: Browser,
		readonly page: Page,
	) {}

	static async open(): Promise<Editor> {
		const browser = await launchBrowser();
		try {
			const page = await browser.newPage({ baseURL: sandboxAddress().n8nUrl, viewport: { width: 1440, height: 900 } });
			page.setDefaultTimeout(PATIENCE_MS);
			const { email, password } = sandboxAddress().login;
			await page.goto('/signin');
			await page.locator('input[name=emailOrLdapLoginId]').fill(email);
			await page.locator('input[name=password]').fill(password);
			await page.getByRole('button', { name: 'Sign in' }).click();
			await page.waitForURL('**/home/**');
			return new Editor(browser, page);
		} catch (error) {
			// Left open, it would keep the tests' process from ending.
			await browser.close();
			throw error;
		}
	}

	async close(): Promise<void> {
		await this.browser.close();
	}

	/** An element by the name that n8n gives it for tests. */
	part(testId: string): Locator {
		return this.page.locator(`[data-test-id="${testId}"]`);
	}

	/** A picture for whoever looks at a run's results. */
	async screenshot(name: string): Promise<void> {
		await this.dismissNotices();
		await this.page.screenshot({ path: this.pathOf(name), animations: 'disabled' });
	}

	/** A picture of the canvas's content alone, without the editor around it. */
	async pictureOfWorkflow(name: string): Promise<void> {
		const boxes = await Promise.all((await this.page.locator('.vue-flow__node').all()).map(async (node) => await node.boundingBox()));
		const shown = boxes.filter((box) => box !== null);
		const left = Math.min(...shown.map(({ x }) => x)) - MARGIN;
		const top = Math.min(...shown.map(({ y }) => y)) - MARGIN;
		const right = Math.max(...shown.map(({ x, width }) => x + width)) + MARGIN;
		const bottom = Math.max(...shown.map(({ y, height }) => y + height)) + MARGIN;
		await this.page.screenshot({ path: this.pathOf(name), clip: { x: left, y: top, width: right - left, height: bottom - top } });
	}

	/** Closes what n8n has to say in its corner, so that the next notice is a new one. */
	async dismissNotices(): Promise<void> {
		const notices = this.page.locator('.el-notification');
		// By script: a notice that goes by itself meanwhile is no matter.
		await notices.locator('.el-notification__closeBtn').evaluateAll('(buttons) => buttons.forEach((button) => button.click())');
		await notices.first().waitFor({ state: 'detached' });
	}

	pathOf(screenshot: string): string {
		return path.join(RESULTS_FOLDER, `${screenshot}.png`);
	}

	async openWorkflow(id: string): Promise<void> {
		await this.page.goto(`/workflow/${id}`);
		await this.part('canvas-node').first().waitFor();
	}

	async fitToView(): Promise<void> {
		await this.part('zoom-to-fit').click();
		await this.standsStill(this.part('canvas-node').first());
	}

	/** A node on the canvas. */
	node(name: string): Locator {
		return this.page.locator(`[data-test-id="canvas-node"][data-node-name="${name}"]`);
	}

	async openNode(name: string): Promise<void> {
		await this.node(name).dblclick();
		await this.part('ndv').waitFor();
	}

	async closeNode(): Promise<void> {
		await this.part('ndv-close-button').click();
		await this.part('ndv').waitFor({ state: 'hidden' });
	}

	/** Types a fixed text into a parameter of the open node or credential. */
	async fill(parameter: string, text: string): Promise<void> {
		const input = this.part(`parameter-input-${parameter}`).locator('input').first();
		await input.fill(text);
		// n8n takes a number over when its field loses the focus.
		await input.blur();
	}

	/** Switches a parameter of the open node to an expression, and types it. */
	async fillExpression(parameter: string, expression: string): Promise<void> {
		const input = this.part(`parameter-input-${parameter}`);
		await input.hover();
		await this.part(`${parameter}-parameter-input-options-container`).locator('[data-test-id="radio-button-expression"]').click();
		// n8n takes what is typed over a moment later; until then it shows what an empty expression gives.
		const nothingYet = this.part('ndv').getByText('[empty]');
		await nothingYet.waitFor();
		await input.locator('.cm-content').fill(expression);
		await nothingYet.waitFor({ state: 'hidden' });
	}

	/** Opens a new credential of this type. @param search what is typed to find the type */
	async newCredential(search: string, type: string): Promise<void> {
		await this.page.goto('/home/credentials/create');
		await this.part('new-credential-type-select').locator('input').fill(search);
		await this.part('new-credential-type-select-option').getByText(type, { exact: true }).click();
		await this.part('new-credential-type-button').click();
	}

	/** n8n tests a credential whenever it saves one. */
	async saveCredential(): Promise<void> {
		await this.part('credential-save-button').click();
	}

	/** As n8n named the open credential. */
	async credentialName(): Promise<string> {
		return (await this.part('credential-name').innerText()).split('\n')[0];
	}

	/** Chooses among the credentials that the open node may have. */
	async chooseCredential(name: string): Promise<void> {
		await this.part('node-credentials-select').click();
		await this.page.getByRole('option').getByText(name, { exact: true }).click();
	}

	/** What is written beside a node's outputs, from the top. */
	async outputLabels(name: string): Promise<string[]> {
		return await this.node(name).locator('[data-test-id="canvas-node-output-handle"]').allInnerTexts();
	}

	/** Opens the node panel at the first free output of a node. */
	async addBehind(name: string): Promise<void> {
		await this.node(name).locator('[data-test-id="canvas-handle-plus"]').first().click();
		await this.part('node-creator-search-bar').waitFor();
	}

	/** Resolves when an element that moves has come to rest. */
	private async standsStill(element: Locator): Promise<void> {
		let before = '';
		for (;;) {
			const now = JSON.stringify(await element.boundingBox());
			if (now === before) return;
			before = now;
			// Two frames: an animation that still runs has moved it by then.
			await this.page.evaluate(`new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))`);
		}
	}
}
