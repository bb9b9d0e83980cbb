import { sandboxAddress } from './address';

const BROWSER_ID = 'e2e';

/** One login to n8n's REST interface. n8n takes few logins a minute, so all test files share the run's one. */
export class Session {
	private constructor(
		private readonly url: string,
		/** The login itself, to be handed to another process. */
		readonly cookie: string,
	) {}

	static ofThisRun(): Session {
		return Session.of(sandboxAddress());
	}

	/** A login that another process has made. */
	static of({ n8nUrl, sessionCookie }: { n8nUrl: string; sessionCookie: string }): Session {
		return new Session(n8nUrl, sessionCookie);
	}

	static async open(url: string, login: { email: string; password: string }): Promise<Session> {
		const response = await send(url, '', 'POST', '/rest/login', { emailOrLdapLoginId: login.email, password: login.password });
		return new Session(url, response.headers.getSetCookie().map((cookie) => cookie.split(';')[0]).join('; '));
	}

	async get<Data>(address: string): Promise<Data> {
		return await dataOf<Data>(await send(this.url, this.cookie, 'GET', address));
	}

	async post<Data>(address: string, body: unknown): Promise<Data> {
		return await dataOf<Data>(await send(this.url, this.cookie, 'POST', address, body));
	}
}

async function send(url: string, cookie: string, method: string, address: string, body?: unknown): Promise<Response> {
	const response = await fetch(url + address, {
		method,
		// n8n binds a login to the browser that made it, named by this header.
		headers: { 'content-type': 'application/json', 'browser-id': BROWSER_ID, cookie },
		body: body === undefined ? undefined : JSON.stringify(body),
	});
	if (!response.ok) throw new Error(`n8n answered ${response.status} to ${method} ${address}: ${await response.text()}`);
	return response;
}

async function dataOf<Data>(response: Response): Promise<Data> {
	return ((await response.json()) as { data: Data }).data;
}
