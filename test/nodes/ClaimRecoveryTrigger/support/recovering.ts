import type { IDataObject } from 'n8n-workflow';
import type { FinishedRun, TestNode, TestWorkflow } from '../../../support/engine';
import { CLAIM_RECOVERY_TRIGGER, claimNode, claimsOf, completeNode, deliveries, guarded, type Claim, type Workbench } from '../../../support/workbench';

/** Outputs of the trigger, by the names on the canvas. */
export const READY_TO_RUN = 0;
export const RECONCILE_FIRST = 1;

export const TRIGGER = 'Trigger';

/** A trigger for the claims that `claimNode` makes. */
export function triggerNode(parameters: IDataObject = {}, settings: Partial<TestNode> = {}): TestNode {
	const pollTimes = { item: [{ mode: 'everyMinute' }] };
	return { type: CLAIM_RECOVERY_TRIGGER, credential: 'store', parameters: { pollTimes, provider: 'custom', source: 'shop', action: 'lead', ...parameters }, ...settings };
}

/** Trigger → the given nodes in a row, and Trigger[1] → Look. */
export function recovering(trigger: TestNode = triggerNode(), row: Record<string, TestNode> = { Action: { type: 'n8n-nodes-base.noOp' } }, id = 'recovery'): TestWorkflow {
	const names = [TRIGGER, ...Object.keys(row)];
	return {
		id,
		nodes: { [TRIGGER]: trigger, ...row, Look: { type: 'n8n-nodes-base.noOp' } },
		lines: [...names.slice(1).map((name, index) => `${names[index]} -> ${name}`), `${TRIGGER}[1] -> Look`],
	};
}

/** Stores deliveries for later work, as a workflow with the operation Receive does. */
export async function receive(workbench: Workbench, ids: string[], parameters: IDataObject = {}): Promise<void> {
	await workbench.run(guarded(claimNode({ operation: 'receive', ...parameters })), { items: deliveries(...ids) });
}

/** Claims deliveries in an execution that ends without a word about them. */
export async function leaveBehind(workbench: Workbench, ids: string[], parameters: IDataObject = {}): Promise<void> {
	await workbench.run(guarded(claimNode(parameters)), { items: deliveries(...ids) });
}

/** Claims deliveries and records an outcome other than completed. */
export async function endAs(workbench: Workbench, ids: string[], complete: IDataObject, parameters: IDataObject = {}): Promise<void> {
	const workflow = guarded(claimNode(parameters), ['Claim -> Complete']);
	workflow.nodes.Complete = completeNode(complete);
	await workbench.run(workflow, { items: deliveries(...ids) });
}

/** The claims that executions got, by the output that they left the trigger by. */
export function taken(executions: FinishedRun[], output = READY_TO_RUN): Claim[] {
	return executions.flatMap((execution) => claimsOf(execution, TRIGGER, output));
}

