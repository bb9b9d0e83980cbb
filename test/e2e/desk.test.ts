import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { OPERATOR } from '../../sandbox/settings';
import { RESULTS_FOLDER, sandboxAddress } from './support/address';
import { AWAY } from './support/claimStore';
import { Desk, LOGIN } from './support/desk';
import { launchBrowser } from './support/editor';
import { N8n } from './support/n8n';
import { until } from './support/until';

/** The example's page in a real browser: what an operator reads there, what a decision leaves in the table, and who is kept out. */

const WIDE = { width: 1100, height: 900 };
const PHONE = { width: 390, height: 844 };
const SECONDS_TO_BE_READY = 60;
const PATIENCE_MS = 60_000;

let n8n: N8n;
let browser: Browser;
let desk: Desk;

beforeAll(async () => {
	n8n = new N8n();
	browser = await launchBrowser();
	desk = await Desk.publish(n8n);
	// n8n keeps what a workflow remembers when its execution has ended, a moment after the answer.
	await desk.deliver({ id: 'first', outcome: 'needsReview', reason: 'it is the first' });
	let key = '';
	await until('the desk keeps its key', SECONDS_TO_BE_READY, async () => key === (key = (await desk.formOf('first')).key));
});

beforeEach(async () => {
	await desk.sql('DELETE FROM claims');
});

const pages: Page[] = [];
afterEach(async () => {
	for (const page of pages.splice(0)) await page.context().close();
});

afterAll(async () => {
	await browser?.close();
	await desk?.close();
});

/** The browser of somebody who has the desk's login at hand. */
async function newPage(options: BrowserContextOptions = {}): Promise<Page> {
	const page = await browser.newPage({ httpCredentials: { username: OPERATOR.user, password: OPERATOR.password }, viewport: WIDE, ...options });
	page.setDefaultTimeout(PATIENCE_MS);
	pages.push(page);
	return page;
}

async function openDesk(options: BrowserContextOptions = {}): Promise<Page> {
	const page = await newPage(options);
	const response = await page.goto(desk.url);
	expect(response?.status()).toBe(200);
	return page;
}

const claimOn = (page: Page, deliveryId: string): Locator => page.getByRole('article', { name: deliveryId, exact: true });

interface Words {
	reason: string;
	decidedBy: string;
	reference?: string;
}

/** Takes a decision as a person does. @returns the status of the answer */
async function decide(page: Page, deliveryId: string, decision: string, { reason, decidedBy, reference }: Words): Promise<number> {
	const claim = claimOn(page, deliveryId);
	await claim.locator('summary').filter({ hasText: `→ ${decision}` }).click();
	const form = claim.getByRole('form', { name: decision });
	if (reference !== undefined) await form.getByLabel('Outcome Reference').fill(reference);
	await form.getByLabel('Reason').last().fill(reason);
	await form.getByLabel('Decided By').fill(decidedBy);
	const [response] = await Promise.all([page.waitForResponse((one) => one.request().method() === 'POST'), form.getByRole('button', { name: decision }).click()]);
	await page.waitForLoadState();
	return response.status();
}

const answerOn = async (page: Page) => (await page.locator('[role=status], [role=alert]').allInnerTexts()).join('\n');
/** The steps of a claim's history, without when they were. */
const historyOf = async (where: Locator) => (await where.locator('.history li').allInnerTexts()).map((step) => step.replace(/^\S+ \S+ /, ''));

describe('Who gets in', () => {
	test('the imported example opens with its login only, and neither browsers nor proxies keep or frame it', async () => {
		const url = sandboxAddress().workflows['operator-desk'].webhookUrl;
		const statusFor = async (login?: string) => (await fetch(url, { headers: login === undefined ? {} : { authorization: `Basic ${btoa(login)}` } })).status;
		expect([await statusFor(), await statusFor(`${OPERATOR.user}:wrong`), (await fetch(url, { method: 'POST' })).status]).toEqual([401, 401, 401]);

		const page = await newPage();
		const response = await page.goto(url);
		expect([response?.status(), await page.getByRole('heading', { level: 1 }).innerText()]).toEqual([200, 'Claim desk']);
		expect(response?.headers()).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', 'x-frame-options': 'DENY', 'referrer-policy': 'no-referrer' });
	});

	test('the login stands nowhere on the page, and no run of the desk is kept', async () => {
		const { text } = await desk.request();
		expect(text).not.toContain(OPERATOR.password);
		expect(text).not.toContain(LOGIN.authorization.replace('Basic ', ''));
		expect(await desk.runsKept()).toEqual([]);
	});
});

describe('What is shown', () => {
	test('how many claims are in which state, what needs a decision, oldest first, and what waits', async () => {
		await desk.deliver({ id: 'evt_done', outcome: 'completed' }, { id: 'evt_running' });
		await desk.deliver({ id: 'evt_review', outcome: 'needsReview', reason: 'two leads' }, { id: 'evt_uncertain', outcome: 'outcomeUncertain', reason: 'no answer' }, { id: 'evt_dead' }, { id: 'evt_retry', outcome: 'retryableFailure', reason: '503' });
		await desk.receive({ id: 'evt_stored' }, { id: 'evt_stored_now' });
		await desk.age('evt_review', 2);
		await desk.age('evt_uncertain', 3);
		await desk.age('evt_dead', 5);
		await desk.age('evt_retry', 1);
		await desk.age('evt_stored', 4);

		const page = await openDesk();
		expect(await page.title()).toBe('3 to decide · Claim desk');
		expect((await page.locator('.counts li').allInnerTexts()).map((tile) => tile.replace(/\s+/g, ' '))).toEqual(['1 needs review', '1 outcome uncertain', '1 processing, lease over', '1 processing', '1 retryable failure', '2 received', '1 completed']);
		expect(await page.getByText('Oldest unfinished work').innerText()).toContain('5 hours ago');
		expect(await page.getByRole('heading', { level: 3 }).allInnerTexts()).toEqual(['evt_dead', 'evt_uncertain', 'evt_review']);
		expect(await claimOn(page, 'evt_dead').locator('.why').innerText()).toContain('Its run never said how it ended, and its lease is over.');
		expect((await page.locator('.card > summary').allInnerTexts()).map((line) => line.split(' ')[0])).toEqual(['evt_stored', 'evt_retry']);
	});

	test("a claim's story: its steps in order, who worked on it, what was delivered, and the way to n8n's execution", async () => {
		await desk.deliver({ id: 'evt_story', outcome: 'retryableFailure', reason: 'the CRM answered 429' });
		await desk.deliver({ id: 'evt_story', outcome: 'outcomeUncertain', reason: 'no answer', lead: { email: 'ann@example.com' } });

		const page = await openDesk();
		const claim = claimOn(page, 'evt_story');
		expect(await historyOf(claim)).toEqual([
			expect.stringMatching(/^First delivery, attempt 1 began execution \d+ at “Idempotent Claim”$/),
			expect.stringMatching(/^Failed, nothing was done: the CRM answered 429 execution \d+ at “Complete Claim”$/),
			expect.stringMatching(/^Attempt 2 began execution \d+ at “Idempotent Claim”$/),
			expect.stringMatching(/^Outcome uncertain: no answer execution \d+ at “Complete Claim”$/),
		]);
		expect(await claim.locator('dl').innerText()).toMatch(/Source\s+my-shop\s+Action\s+create-lead\s+Event type\s+lead.created\s[\s\S]+Attempts\s+2 of 5/);

		const delivered = claim.locator('pre');
		expect(await delivered.isVisible()).toBe(false);
		await claim.getByText('What was delivered').click();
		expect(JSON.parse(await delivered.innerText())).toMatchObject({ body: { id: 'evt_story', source: 'my-shop' } });

		const link = await claim.locator('dd').getByRole('link', { name: /^execution / }).getAttribute('href');
		const [, workflow, execution] = /^(.+)\/executions\/(\d+)$/.exec(new URL(link ?? '', page.url()).href) ?? [];
		expect(workflow).toBe(`${sandboxAddress().n8nUrl}/workflow/${desk.sender.id}`);
		expect(await n8n.executionIds(desk.sender)).toContain(execution);
	});

	test('of many claims the oldest, and how many there are', async () => {
		await desk.deliver({ id: 'evt_00', outcome: 'outcomeUncertain', reason: 'no answer' });
		await desk.copy('evt_00', 22);
		const page = await openDesk();
		expect(await page.getByText('The oldest 20 of 23 are shown').count()).toBe(1);
		expect(await page.getByRole('article').count()).toBe(20);
		expect(await claimOn(page, 'evt_00-22').count()).toBe(1);
	});

	test('claims of manual runs are asked for, and are not among the live ones', async () => {
		await desk.deliver({ id: 'evt_test', outcome: 'needsReview', reason: 'a try' });
		await desk.sql(`UPDATE claims SET environment = 'test'`);
		const page = await openDesk();
		expect(await page.getByRole('article').count()).toBe(0);
		await page.getByRole('link', { name: 'Test claims' }).click();
		await claimOn(page, 'evt_test').waitFor();
		expect(await decide(page, 'evt_test', 'No Action Needed', { reason: 'only a try', decidedBy: 'operator' })).toBe(200);
		expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Claim desk: test claims');
		expect(await desk.row('evt_test')).toMatchObject({ state: 'completed', resolvedBy: 'operator' });
	});
});

describe('Decisions', () => {
	test.each([
		{ decision: 'Completed', reference: 'lead-4711', state: 'completed', said: 'The state of evt_b is now completed.', step: 'On-call operator recorded it as completed: looked it up · reference lead-4711' },
		{ decision: 'Release', reference: undefined, state: 'retryable_failure', said: 'The state of evt_b is now retryable failure.', step: 'On-call operator released it for another attempt: looked it up' },
		{ decision: 'Needs Review', reference: undefined, state: 'needs_review', said: 'The state of evt_b is now needs review.', step: 'On-call operator kept it for review: looked it up' },
		{ decision: 'No Action Needed', reference: undefined, state: 'completed', said: 'The state of evt_b is now completed.', step: 'On-call operator closed it: no action needed: looked it up' },
	])('$decision: taken in the browser, told on the page, and in the table', async ({ decision, reference, state, said, step }) => {
		const wanted = ['evt_a', 'evt_b', 'evt_c'].map((id) => ({ id, outcome: 'outcomeUncertain', reason: 'no answer' }) as const);
		await desk.deliver(...wanted);
		const others = [await desk.row('evt_a'), await desk.row('evt_c')];
		const before = await desk.row('evt_b');

		const page = await openDesk();
		expect(await decide(page, 'evt_b', decision, { reason: 'looked it up', decidedBy: 'On-call operator', reference })).toBe(200);
		expect(await answerOn(page)).toContain(said);
		expect((await historyOf(page.getByRole('status'))).at(-1)).toBe(step);
		const after = await desk.row('evt_b');
		expect(after).toMatchObject({ state, version: before.version + 1, reference: reference ?? null, resolvedBy: 'On-call operator' });
		expect(after.history).toEqual([...before.history, expect.objectContaining({ state, by: 'On-call operator', reason: 'looked it up', reference: reference ?? null, workflow: null })]);
		expect([await desk.row('evt_a'), await desk.row('evt_c')]).toEqual(others);
		// The next decision is probably the same person's.
		expect(await claimOn(page, 'evt_a').getByLabel('Decided By').first().inputValue()).toBe('On-call operator');
	});

	test('what is released runs again with the next delivery', async () => {
		const delivery = { id: 'evt_again', outcome: 'needsReview', reason: 'two leads' } as const;
		await desk.deliver(delivery);
		const page = await openDesk();
		await decide(page, 'evt_again', 'Release', { reason: 'both were deleted', decidedBy: 'operator' });
		await desk.deliver({ ...delivery, outcome: 'completed' });
		expect(await desk.row('evt_again')).toMatchObject({ state: 'completed', attempt: 2, resolvedBy: null });
	});

	test('a run that comes back after the decision can record nothing, and what it created is on record', async () => {
		const handle = await desk.deliver({ id: 'evt_late' });
		await desk.age('evt_late', 1);
		const page = await openDesk();
		await decide(page, 'evt_late', 'Needs Review', { reason: 'the CRM is down', decidedBy: 'operator' });
		expect(await desk.finish(handle, { outcome: 'completed', reference: 'lead-late' })).toMatchObject({ status: 'stale', reason: 'resolved' });
		expect(await desk.row('evt_late')).toMatchObject({ state: 'needs_review', reference: null, resolvedBy: 'operator' });
		await page.goto(desk.url);
		expect((await historyOf(claimOn(page, 'evt_late'))).at(-1)).toContain('perhaps it was done twice · reference lead-late');
	});

	test('a claim that has moved since it was seen: nothing is written, and the page shows how it is now', async () => {
		await desk.deliver({ id: 'evt_moved', outcome: 'outcomeUncertain', reason: 'no answer' });
		const [slow, quick] = [await openDesk(), await openDesk()];
		await decide(quick, 'evt_moved', 'Completed', { reason: 'it is there', decidedBy: 'quick operator', reference: 'lead-1' });
		const decided = await desk.row('evt_moved');
		expect(await decide(slow, 'evt_moved', 'Release', { reason: 'it is not there', decidedBy: 'slow operator' })).toBe(409);
		expect(await answerOn(slow)).toContain('evt_moved: its state is now completed.');
		expect((await historyOf(slow.getByRole('alert'))).at(-1)).toContain('quick operator recorded it as completed');
		expect(await desk.row('evt_moved')).toEqual(decided);
	});

	test('a decision that is sent again by reloading the page counts once', async () => {
		await desk.deliver({ id: 'evt_twice', outcome: 'outcomeUncertain', reason: 'no answer' });
		const page = await openDesk();
		await decide(page, 'evt_twice', 'Needs Review', { reason: 'later', decidedBy: 'operator' });
		const decided = await desk.row('evt_twice');
		expect((await page.reload())?.status()).toBe(409);
		expect(await answerOn(page)).toContain('If you sent one decision twice, the first of them counts.');
		expect(await desk.row('evt_twice')).toEqual(decided);
	});

	test('a claim that was purged meanwhile is not on record, and the page says so', async () => {
		await desk.deliver({ id: 'evt_gone', outcome: 'needsReview', reason: 'two leads' });
		const page = await openDesk();
		await desk.sql('DELETE FROM claims');
		expect(await decide(page, 'evt_gone', 'Needs Review', { reason: 'later', decidedBy: 'operator' })).toBe(404);
		expect(await answerOn(page)).toContain('There is no claim for evt_gone any more');
	});

	test('without a reason, a decider, or what was created, nothing is decided: neither in the browser nor past it', async () => {
		await desk.deliver({ id: 'evt_why', outcome: 'outcomeUncertain', reason: 'no answer' });
		const before = await desk.row('evt_why');
		const page = await openDesk();
		const claim = claimOn(page, 'evt_why');
		await claim.getByText('It was done').click();
		await claim.getByRole('button', { name: 'Completed' }).click();
		expect(await claim.locator('form').first().locator(':invalid').count()).toBe(3);

		const form = await desk.formOf('evt_why');
		const complete = { ...form, decision: 'completed', reason: 'it is there', decidedBy: 'operator', outcomeReference: 'lead-1' };
		for (const [field, label] of [['reason', 'Reason'], ['decidedBy', 'Decided By'], ['outcomeReference', 'Outcome Reference']]) {
			const { status, text } = await desk.post({ ...complete, [field]: '  ' });
			expect([status, text]).toEqual([400, expect.stringContaining(`Missing: ${label}.`)]);
		}
		expect(await desk.row('evt_why')).toEqual(before);
		expect((await desk.post(complete)).status).toBe(200);
	});
});

describe('Requests from other sites', () => {
	/** A server of somebody else that holds one page. On n8n's own host it is the same site to a browser, and another origin. */
	async function otherSite(html: string, host = 'localhost'): Promise<{ url: string; close: () => Promise<void> }> {
		const server = createServer((_request, response) => response.setHeader('content-type', 'text/html').end(html)).listen(0, '127.0.0.1');
		await once(server, 'listening');
		return {
			url: `http://${host}:${(server.address() as AddressInfo).port}/`,
			async close() {
				server.closeAllConnections();
				server.close();
				await once(server, 'close');
			},
		};
	}

	test('a form on another site, sent by a browser that knows the login: refused, and nothing is written', async () => {
		await desk.deliver({ id: 'evt_forged', outcome: 'outcomeUncertain', reason: 'no answer' });
		const before = await desk.row('evt_forged');
		const { key, handle } = await desk.formOf('evt_forged');
		// All that such a site can know, the handle included.
		const fields = { handle, decision: 'noActionNeeded', reason: 'forged', decidedBy: 'somebody else' };
		const input = ([name, value]: [string, string]) => `<input type="hidden" name="${name}" value="${value}">`;
		const site = await otherSite(`<form method="post" action="${desk.url}">${Object.entries(fields).map(input).join('')}<button>Win</button></form>`);
		try {
			const page = await openDesk();
			await page.goto(site.url);
			const [response] = await Promise.all([page.waitForResponse(desk.url), page.getByRole('button').click()]);
			await page.waitForLoadState();
			expect([response.status(), response.request().headers().authorization ?? (await response.request().allHeaders()).authorization]).toEqual([403, expect.stringMatching(/^Basic /)]);
			expect(await answerOn(page)).toContain('Nothing was decided');
			expect(await desk.row('evt_forged')).toEqual(before);
		} finally {
			await site.close();
		}
		// It was the key alone that was wanting.
		expect((await desk.post({ ...fields, key })).status).toBe(200);
		expect(await desk.row('evt_forged')).toMatchObject({ state: 'completed', resolvedBy: 'somebody else' });
	});

	test.each(['localhost', new URL(sandboxAddress().n8nUrl).hostname])('a page on another server at %s can neither read the key nor frame the desk', async (host) => {
		const site = await otherSite(`<iframe src="${desk.url}"></iframe>`, host);
		try {
			const page = await openDesk();
			await page.goto(site.url);
			const read = `fetch(${JSON.stringify(desk.url)}, { credentials: 'include' }).then((response) => response.text(), (error) => String(error))`;
			expect(await page.evaluate(read)).toBe('TypeError: Failed to fetch');
			expect(await page.frames()[1].evaluate('document.body.innerText')).not.toContain('Claim desk');
		} finally {
			await site.close();
		}
	});

	test('a wrong, empty, doubled or foreign key is refused, whatever the body is', async () => {
		await desk.deliver({ id: 'evt_key', outcome: 'outcomeUncertain', reason: 'no answer' });
		const before = await desk.row('evt_key');
		const { key, handle } = await desk.formOf('evt_key');
		const fields = { handle, decision: 'noActionNeeded', reason: 'forged', decidedBy: 'somebody else' };
		const json = async (body: unknown) => (await desk.request({ method: 'POST', headers: { ...LOGIN, 'content-type': 'application/json' }, body: JSON.stringify(body) })).status;
		const forms = ['', 'undefined', key.slice(1), key.toUpperCase(), '0'.repeat(64)].map((wrong): Array<[string, string]> => Object.entries({ ...fields, key: wrong }));
		forms.push([...Object.entries(fields), ['key', key], ['key', key]]);
		for (const form of forms) expect((await desk.post(form)).status).toBe(403);
		for (const body of [{ ...fields, key: { length: 64 } }, { ...fields, key: null }, [], 'text', 7]) expect([400, 403]).toContain(await json(body));
		expect(await desk.row('evt_key')).toEqual(before);
	});

	test('a page that is too old is told to open the desk again', async () => {
		// An hour of its own is a quarter of a second.
		const hasty = await Desk.publish(n8n, {}, (example) => example.replace('60 * 60 * 1000', '250'));
		try {
			await hasty.deliver({ id: 'evt_old', outcome: 'outcomeUncertain', reason: 'no answer' });
			const before = await hasty.row('evt_old');
			const form = await hasty.formOf('evt_old');
			let text = '';
			await until('the key is too old', SECONDS_TO_BE_READY, async () => {
				const answer = await hasty.post(form);
				text = answer.text;
				return answer.status === 403;
			});
			expect(text).toContain('Open the desk again');
			expect((await hasty.post({ ...form, decision: 'needsReview', reason: 'late', decidedBy: 'operator' })).status).toBe(403);
			expect(await hasty.row('evt_old')).toEqual(before);
			expect((await hasty.formOf('evt_old')).key).not.toBe(form.key);
		} finally {
			await hasty.close();
		}
	});
});

describe('Hostile values', () => {
	const HOSTILE = [
		`"><script>pwned = 1</script>`,
		`'></textarea></pre></style></title><img src=x onerror="pwned = 1">`,
		`$&$'$\`$1{{ $json.page }}{{ 7 * 7 }}`,
		`evt_\u202Egnp.exe\u2066\u200B`,
		'x'.repeat(512),
		'<'.repeat(512),
	];

	test('are shown as what they are, run nowhere, and break nothing at the width of a phone', async () => {
		for (const value of HOSTILE) await desk.deliver({ id: value, source: value.slice(0, 256), outcome: 'outcomeUncertain', reason: value, lead: { email: value, more: [value] } });
		// Without the page's own ban on scripts: escaping alone must do.
		const page = await openDesk({ viewport: PHONE, bypassCSP: true });
		for (const summary of await page.locator('summary').filter({ hasText: /What was delivered|It was done/ }).all()) await summary.click();
		await page.screenshot({ path: path.join(RESULTS_FOLDER, 'desk, hostile values on a phone.png'), fullPage: true });
		expect(await page.evaluate(`[typeof pwned, document.querySelectorAll('script, img, iframe, object').length, document.styleSheets.length]`)).toEqual(['undefined', 0, 1]);
		expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width);
		const asShown = (value: string) => value.replace('\u202E', '‹U+202E›').replace('\u2066', '‹U+2066›').replace('\u200B', '‹U+200B›');
		const names = await page.getByRole('heading', { level: 3 }).allInnerTexts();
		expect(names).toEqual(HOSTILE.map(asShown));
		expect(await page.locator('.why q').allInnerTexts()).toEqual(HOSTILE.map(asShown));
	});

	test('are decided about like any other, and the hostile words of a decision are kept as they are', async () => {
		const [id, words] = HOSTILE;
		await desk.deliver({ id, outcome: 'outcomeUncertain', reason: 'no answer' });
		const page = await openDesk({ bypassCSP: true });
		expect(await decide(page, id, 'Completed', { reason: words, decidedBy: words, reference: words })).toBe(200);
		expect(await desk.row(id)).toMatchObject({ state: 'completed', reference: words, resolvedBy: words });
		expect(await answerOn(page)).toContain(`${words} recorded it as completed: ${words} · reference ${words}`);
		expect(await page.evaluate('typeof pwned')).toBe('undefined');
	});
});

describe('A morning', () => {
	test('with three claims to decide: all of it can be read at a desk and on a phone', async () => {
		const lead = (number: number) => ({ email: `lead-${number}@example.com`, name: `Lead ${number}` });
		const source = 'example-crm';
		await desk.deliver({ id: 'evt_8790', source, outcome: 'completed' });
		await desk.copy('evt_8790', 127);
		const handle = await desk.deliver({ id: 'evt_8841', source, lead: lead(8841), outcome: 'outcomeUncertain', reason: 'The connection was aborted, perhaps the server is offline' });
		await desk.finish(handle, { outcome: 'needsReview', reason: 'The look-up is not clear: 2 leads, 57, 58' });
		await desk.deliver({ id: 'evt_8863', source, outcome: 'retryableFailure', reason: '429 - too many requests' });
		await desk.deliver({ id: 'evt_8863', source, lead: lead(8863), outcome: 'outcomeUncertain', reason: 'timeout of 60000ms exceeded' });
		await desk.deliver({ id: 'evt_8870', source, lead: lead(8870) }, { id: 'evt_8874', source, lead: lead(8874), outcome: 'retryableFailure', reason: '503 - closed for maintenance' });
		await desk.receive({ id: 'evt_8879', source, lead: lead(8879) });
		await desk.age('evt_8841', 7, 2);
		await desk.age('evt_8863', 5, 2);
		await desk.age('evt_8870', 4);
		await desk.age('evt_8874', 3);
		await desk.age('evt_8879', 2);

		for (const [name, options] of [['operator-desk', { viewport: { width: 1100, height: 1500 } }], ['operator-desk-phone', { viewport: { width: PHONE.width, height: 1900 }, deviceScaleFactor: 2 }]] as const) {
			const page = await openDesk(options);
			const claim = claimOn(page, 'evt_8841');
			await claim.getByText('It was done').click();
			await claim.getByLabel('Outcome Reference').fill('57');
			await claim.getByLabel('Reason').first().fill('58 is a copy that was deleted by hand');
			await claim.getByLabel('Decided By').first().fill('On-call operator');
			await claim.getByRole('button', { name: 'Completed' }).focus();
			expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(options.viewport.width);
			expect(await page.getByRole('article').count()).toBe(3);
			await page.evaluate('scrollTo(0, 0)');
			await page.screenshot({ path: path.join(RESULTS_FOLDER, `${name}.png`) });
		}
	});
});

describe('A claim store that is away', () => {
	test('the desk says so, with what to do', async () => {
		const lost = await Desk.publish(n8n, AWAY);
		try {
			const page = await newPage();
			const response = await page.goto(lost.url);
			expect(response?.status()).toBe(503);
			expect(await answerOn(page)).toMatch(/The claim store could not be asked\s+No connection to PostgreSQL at 127\.0\.0\.1:9[\s\S]+Check that its database is up/);
		} finally {
			await lost.close();
		}
	});

	test('a decision that it does not answer is not confirmed, and its words are not lost', async () => {
		await desk.deliver({ id: 'evt_away', outcome: 'outcomeUncertain', reason: 'no answer' });
		const before = await desk.row('evt_away');
		const page = await openDesk();
		await desk.sql('ALTER TABLE claims RENAME COLUMN history TO away');
		try {
			expect(await decide(page, 'evt_away', 'Completed', { reason: 'long thought about', decidedBy: 'operator', reference: 'lead-9' })).toBe(503);
			expect(await answerOn(page)).toMatch(/Not confirmed[\s\S]+lead-9\s[\s\S]*long thought about[\s\S]+The claim store could not be asked/);
		} finally {
			await desk.sql('ALTER TABLE claims RENAME COLUMN away TO history');
		}
		await page.getByRole('link', { name: 'Open the desk again' }).click();
		await claimOn(page, 'evt_away').waitFor();
		expect(await desk.row('evt_away')).toEqual(before);
	});
});
