import { Container } from '@n8n/di';
import { ActiveWorkflowTriggers, PollContext, PollTriggerExecutor } from 'n8n-core';
import { commonPollingParameters } from 'n8n-core/dist/nodes-loader/constants';
import type { INode, INodeExecutionData, INodeType, IPollFunctions, Workflow, WorkflowActivateMode } from 'n8n-workflow';
import type { Engine, FinishedRun, RunOptions, TestWorkflow } from './engine';

export interface PublishOptions extends Pick<RunOptions, 'credentials' | 'subWorkflows'> {
	/** Why n8n activates it: `activate` when a person publishes it, `init` when n8n has been started. */
	activation?: WorkflowActivateMode;
	/** In the place of n8n's start of an execution. */
	emit?: (data: INodeExecutionData[][]) => void;
}

/** A polling trigger as n8n's loader leaves it: with the parameter Poll Times before its own. */
export function withPollTimes(trigger: INodeType): INodeType {
	trigger.description.properties = [...commonPollingParameters, ...trigger.description.properties];
	return trigger;
}

/**
 * Publishes a workflow that begins with a polling trigger, by n8n-core's own classes: they activate it, which includes
 * its first poll, and they poll. Only the clock is the test's.
 *
 * @throws what n8n tells the person who publishes, when the first poll fails
 */
export async function publish(engine: Engine, definition: TestWorkflow, options: PublishOptions = {}): Promise<Publication> {
	const publication = new Publication(engine, definition, options);
	await publication.activate();
	return publication;
}

let published = 0;

export class Publication {
	/** What n8n would list as failed executions that never began, and hand to the error workflow. */
	readonly failures: Error[] = [];
	private started: Array<Promise<FinishedRun>> = [];
	private readonly triggers = Container.get(ActiveWorkflowTriggers);
	private readonly workflow: Workflow;
	private readonly key = `publication-${++published}`;
	private pollFunctions: IPollFunctions | undefined;

	constructor(
		private readonly engine: Engine,
		private readonly definition: TestWorkflow,
		private readonly options: PublishOptions,
	) {
		this.workflow = engine.prepare(definition, options).workflow;
	}

	/** As n8n's own factory makes a trigger's context (`TriggerExecutionContextFactory`). */
	private contextOf(workflow: Workflow, node: INode, activation: WorkflowActivateMode): IPollFunctions {
		const emit = (outputs: INodeExecutionData[][]) => {
			this.started.push(this.engine.run(this.definition, { ...this.options, from: node.name, outputs, mode: 'trigger' }));
		};
		const { additionalData } = this.engine.prepare(this.definition, this.options);
		return new PollContext(workflow, node, additionalData, 'trigger', activation, this.options.emit ?? emit, (error) => this.failures.push(error));
	}

	async activate(): Promise<void> {
		const { additionalData } = this.engine.prepare(this.definition, this.options);
		const getPollFunctions = (workflow: Workflow, node: INode) => (this.pollFunctions = this.contextOf(workflow, node, this.options.activation ?? 'activate'));
		await this.triggers.addAllTriggers(this.key, this.workflow, additionalData, 'trigger', this.options.activation ?? 'activate', unused, getPollFunctions);
	}

	/** The executions that were started since this was asked last, all ended. */
	async executions(): Promise<FinishedRun[]> {
		return await Promise.all(this.started.splice(0));
	}

	/** One scheduled poll, and the executions that it started. */
	async poll(): Promise<FinishedRun[]> {
		const [node] = this.workflow.getPollNodes();
		if (this.pollFunctions === undefined) throw new Error('The workflow is not published');
		await Container.get(PollTriggerExecutor).create(this.workflow, node, this.pollFunctions, () => this.triggers.isActive(this.key))();
		return await this.executions();
	}

	async unpublish(): Promise<void> {
		await this.triggers.remove(this.key);
	}
}

function unused(): never {
	throw new Error('The workflow under test has no trigger of that kind');
}
