import path from 'node:path';

/** The repository's root: the package that the sandbox builds, packs and installs. */
export const PACKAGE_FOLDER = path.dirname(__dirname);
export const EXAMPLES_FOLDER = path.join(PACKAGE_FOLDER, 'examples');
export const DATA_FOLDER = path.join(__dirname, '.data');

/** Fixed, and fit for nothing but a sandbox that listens on loopback. */
export const LOGIN = { email: 'owner@example.com', password: 'Sandbox-only-1' };

/** The login to the operator desk, a page that n8n serves. */
export const OPERATOR = { user: 'operator', password: 'Sandbox-only-2' };

export interface Ports {
	n8n: number;
	/** n8n's broker for its task runners. */
	runnerBroker: number;
	destination: number;
	postgres: number;
	/** The line to the claim store that can be cut: what n8n's credential points at. */
	claimStore: number;
}

/** Which environment variable moves which port, and what the port is for in an error message. */
export const PORT_SETTINGS: Record<keyof Ports, { variable: string; usual: number; purpose: string }> = {
	n8n: { variable: 'SANDBOX_N8N_PORT', usual: 5678, purpose: 'n8n' },
	runnerBroker: { variable: 'SANDBOX_BROKER_PORT', usual: 5679, purpose: "n8n's task broker" },
	destination: { variable: 'SANDBOX_DESTINATION_PORT', usual: 5680, purpose: 'the destination' },
	postgres: { variable: 'SANDBOX_POSTGRES_PORT', usual: 5681, purpose: 'PostgreSQL' },
	claimStore: { variable: 'SANDBOX_CLAIM_STORE_PORT', usual: 5682, purpose: 'the claim store' },
};
