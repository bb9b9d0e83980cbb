import { createServer } from 'node:net';
import { PORT_SETTINGS, type Ports } from './settings';

const names = Object.keys(PORT_SETTINGS) as Array<keyof Ports>;

/** The usual ports, or those that the environment names. */
export function portsFromEnvironment(environment: NodeJS.ProcessEnv): Ports {
	const ports = {} as Ports;
	for (const name of names) {
		const { variable, usual } = PORT_SETTINGS[name];
		const port = Number(environment[variable] ?? usual);
		if (!Number.isInteger(port) || port < 1 || port > 65535) {
			throw new Error(`${variable} is "${environment[variable]}". Give it a port number from 1 to 65535.`);
		}
		ports[name] = port;
	}
	return ports;
}

/** Ports that nothing uses at this moment, for a sandbox beside another one. */
export async function freePorts(): Promise<Ports> {
	const ports = {} as Ports;
	for (const name of names) {
		do ports[name] = await findFreePort();
		while (names.some((other) => other !== name && ports[other] === ports[name]));
	}
	return ports;
}

/** @throws Error that names each port in use, what it is for, and how to move it. */
export async function checkPortsAreFree(ports: Ports): Promise<void> {
	const problems: string[] = [];
	for (const name of names) {
		const { variable, purpose } = PORT_SETTINGS[name];
		if (await isInUse(ports[name])) {
			problems.push(`Port ${ports[name]}, meant for ${purpose}, is in use. Stop what uses it, or choose another: ${variable}=${ports[name] + 1000} npm start`);
		}
	}
	if (new Set(Object.values(ports)).size < names.length) problems.push('Two of the sandbox\'s ports are the same number.');
	if (problems.length > 0) throw new Error(problems.join('\n'));
}

async function isInUse(port: number): Promise<boolean> {
	return await new Promise((resolve) => {
		const probe = createServer();
		probe.once('error', () => resolve(true));
		probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(false)));
	});
}

/** A TCP port on loopback that nothing listens on at this moment. */
export async function findFreePort(): Promise<number> {
	return await new Promise((resolve, reject) => {
		const probe = createServer();
		probe.once('error', reject);
		probe.listen(0, '127.0.0.1', () => {
			const address = probe.address();
			probe.close(() => (address && typeof address === 'object' ? resolve(address.port) : reject(new Error('No free port'))));
		});
	});
}
