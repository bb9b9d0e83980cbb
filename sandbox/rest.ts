/** n8n's own REST interface, the one that its editor uses. */
export class N8nRest {
	private cookie = '';

	constructor(readonly url: string) {}

	/** Signs in, making the owner's account first where n8n has none. */
	async signIn(login: { email: string; password: string }): Promise<void> {
		const settings = await this.get<{ userManagement: { showSetupOnFirstLoad: boolean } }>('/rest/settings');
		if (settings.userManagement.showSetupOnFirstLoad) {
			await this.post('/rest/owner/setup', { ...login, firstName: 'Sandbox', lastName: 'Owner' });
		} else {
			await this.post('/rest/login', { emailOrLdapLoginId: login.email, password: login.password });
		}
	}

	async get<Data>(address: string): Promise<Data> {
		return await this.request<Data>('GET', address);
	}

	async post<Data>(address: string, body: unknown): Promise<Data> {
		return await this.request<Data>('POST', address, body);
	}

	async patch<Data>(address: string, body: unknown): Promise<Data> {
		return await this.request<Data>('PATCH', address, body);
	}

	private async request<Data>(method: string, address: string, body?: unknown): Promise<Data> {
		const response = await fetch(this.url + address, {
			method,
			// n8n binds a login to the browser that made it, named by this header.
			headers: { 'content-type': 'application/json', 'browser-id': 'sandbox', cookie: this.cookie },
			body: body === undefined ? undefined : JSON.stringify(body),
		});
		const setCookie = response.headers.getSetCookie().map((cookie) => cookie.split(';')[0]);
		if (setCookie.length > 0) this.cookie = setCookie.join('; ');
		if (!response.ok) throw new Error(`n8n answered ${response.status} to ${method} ${address}: ${await response.text()}`);
		return ((await response.json()) as { data: Data }).data;
	}
}
