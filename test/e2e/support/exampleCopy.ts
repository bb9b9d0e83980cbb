import { adapt, pointedAt, readExample, type Credentials } from '../../../sandbox/setup';
import { sandboxAddress } from './address';
import type { N8n, SavedWorkflow } from './n8n';

/** NodeParameters of some nodes, by the node's name. */
export type NodeParameters = Record<string, Record<string, unknown>>;

export interface CopyOptions {
	/** What is different in these nodes. */
	parameters?: NodeParameters;
	/** Instead of the sandbox's. */
	credentials?: Partial<Credentials>;
	/** The ID of its error workflow; without one it has none. */
	errorWorkflow?: string;
	/** What is done to the text of its file, where its requests should not just go to the sandbox's destination. */
	edit?: (text: string) => string;
}

/** Imports an example once more, under this name, as the sandbox has imported it but for the options. It is not active yet. */
export async function createCopy(n8n: N8n, example: string, name: string, options: CopyOptions = {}): Promise<SavedWorkflow> {
	const { credentials: ofSandbox, destinationUrl } = sandboxAddress();
	const { parameters = {}, credentials, errorWorkflow, edit = pointedAt(destinationUrl) } = options;
	const workflow = await readExample(example, edit);
	adapt(workflow, { ...ofSandbox, ...credentials }, errorWorkflow);
	for (const node of workflow.nodes) Object.assign(node.parameters, parameters[node.name]);
	return await n8n.rest.post<SavedWorkflow>('/rest/workflows', { ...workflow, name });
}
