import { Session } from './session';
import { until } from './until';
import { buildWorkflow, type WorkflowPlan } from './workflow';

export interface SavedWorkflow {
	id: string;
	name: string;
	versionId: string;
}

/** One item of a node's output, as the execution stored it. */
export interface OutputItem {
	json: Record<string, unknown>;
}

export interface NodeRunData {
	data?: { main: Array<OutputItem[] | null> };
	error?: { message: string; description?: string };
	/** Hints that the editor shows beside the output. */
	hints?: Array<{ message: string; type?: string }>;
}

export interface Execution {
	id: string;
	status: string;
	mode: string;
	runData: Record<string, NodeRunData[]>;
	errorMessage: string | undefined;
}

const FINISHED = ['success', 'error', 'crashed', 'canceled'];
const SECONDS_TO_PUBLISH = 60;

/** n8n as its owner uses it, over the editor's own REST interface. */
export class N8n {
	constructor(readonly rest = Session.ofThisRun()) {}

	async create(plan: WorkflowPlan): Promise<SavedWorkflow> {
		return await this.rest.post<SavedWorkflow>('/rest/workflows', buildWorkflow(plan));
	}

	/** Creates a workflow and activates it. */
	async publish(plan: WorkflowPlan): Promise<SavedWorkflow> {
		const workflow = await this.create(plan);
		await this.activate(workflow);
		return workflow;
	}

	/** Waits until the workflow's production webhook listens, or until it can be called. @throws Error with n8n's reason where it gives up */
	async activate({ id, name, versionId }: SavedWorkflow): Promise<void> {
		await this.rest.post(`/rest/workflows/${id}/activate`, { versionId });
		await until(`"${name}" is published`, SECONDS_TO_PUBLISH, async () => {
			const publication = await this.rest.get<{ status: string }>(`/rest/workflows/${id}/publication-status`);
			if (publication.status === 'failed') throw new Error(`n8n did not publish "${name}": ${JSON.stringify(publication)}`);
			return publication.status === 'published';
		});
	}

	async deactivate({ id }: { id: string }): Promise<void> {
		await this.rest.post(`/rest/workflows/${id}/deactivate`, {});
	}

	/** A run from the editor's button, started at one trigger. Answers `waitingForWebhook` where that trigger needs a test event. */
	async runManually(workflow: { id: string }, trigger: string): Promise<{ executionId?: string; waitingForWebhook?: boolean }> {
		return await this.rest.post(`/rest/workflows/${workflow.id}/run`, { triggerToStartFrom: { name: trigger } });
	}

	/** The IDs of a workflow's executions, at most the latest hundred: n8n's list loses some between two pages. */
	async executionIds({ id }: { id: string }): Promise<string[]> {
		return await this.latestExecutionIds({ workflowId: id });
	}

	/** How many executions in one of these states a workflow has, however many. */
	async executionCount({ id }: { id: string }, ...status: string[]): Promise<number> {
		return (await this.rest.get<{ count: number }>(`/rest/executions?limit=1&filter=${encodeURIComponent(JSON.stringify({ workflowId: id, status }))}`)).count;
	}

	/** n8n counts its executions up, over all workflows. */
	async newestExecutionId(): Promise<number> {
		return Math.max(0, ...(await this.latestExecutionIds({})).map(Number));
	}

	private async latestExecutionIds(filter: { workflowId?: string }): Promise<string[]> {
		const { results } = await this.rest.get<{ results: Array<{ id: string }> }>(`/rest/executions?limit=100&filter=${encodeURIComponent(JSON.stringify(filter))}`);
		// A Set, because one that ends at this moment may be listed as running and as ended.
		return [...new Set(results.map(({ id }) => id))];
	}

	async execution(id: string): Promise<Execution> {
		const { status, mode, data } = await this.rest.get<{ status: string; mode: string; data: string }>(`/rest/executions/${id}`);
		const { resultData } = unflatten(data) as { resultData: { runData: Execution['runData']; error?: { message: string } } };
		return { id, status, mode, runData: resultData.runData, errorMessage: resultData.error?.message };
	}

	async finishedExecution(id: string, seconds = 60): Promise<Execution> {
		const stored = async () => (await this.rest.get<{ status: string }>(`/rest/executions/${id}`)).status;
		await until(`execution ${id} has ended`, seconds, async () => FINISHED.includes(await stored()));
		return await this.execution(id);
	}

	/** The newest execution of a workflow, when all have ended: one that ends at the moment of asking may be neither in n8n's list of the running nor in that of the ended. */
	async latestExecution(workflow: { id: string }, seconds = 60): Promise<Execution> {
		await until('every execution has ended', seconds, async () => (await this.executionCount(workflow, 'new', 'running')) === 0);
		const ids = await this.startedExecutionIds(workflow, seconds);
		return await this.finishedExecution(String(Math.max(...ids.map(Number))), seconds);
	}

	/** The one execution that a fresh workflow has had, when it has ended. */
	async onlyExecution(workflow: { id: string }, seconds = 60): Promise<Execution> {
		const ids = await this.startedExecutionIds(workflow, seconds);
		if (ids.length > 1) throw new Error(`The workflow ran ${ids.length} times`);
		return await this.finishedExecution(ids[0], seconds);
	}

	/** The executions that a workflow has had, in no order, when there are any. */
	async startedExecutionIds(workflow: { id: string }, seconds = 60): Promise<string[]> {
		let ids: string[] = [];
		await until('the workflow has been started', seconds, async () => (ids = await this.executionIds(workflow)).length > 0);
		return ids;
	}
}

/** Every item that left a node by one output, over all of its runs. */
export function itemsOf({ runData }: Execution, node: string, output: number): Array<Record<string, unknown>> {
	return (runData[node] ?? []).flatMap(({ data }) => (data?.main[output] ?? []).map(({ json }) => json));
}

/**
 * n8n stores an execution as one flat list, in which the members of an object or array that are texts, objects or
 * arrays are given by their place in the list.
 */
function unflatten(text: string): unknown {
	const list = JSON.parse(text) as unknown[];
	const made = new Map<number, unknown>();
	const at = (place: number): unknown => {
		const stored = list[place];
		if (stored === null || typeof stored !== 'object') return stored;
		if (made.has(place)) return made.get(place);
		const whole: Record<string, unknown> | unknown[] = Array.isArray(stored) ? [] : {};
		made.set(place, whole);
		for (const [key, member] of Object.entries(stored)) {
			(whole as Record<string, unknown>)[key] = typeof member === 'string' ? at(Number(member)) : member;
		}
		return whole;
	};
	return at(0);
}
