import type { IDataObject, INodeExecutionData } from 'n8n-workflow';
import type { FinishedRun, RunOptions, TestWorkflow } from './engine';
import { claimNode, claimsOf, completeNode, deliveries, guarded, NEW_CLAIM, OPERATIONAL_ERROR, RECORDED, STALE_CLAIM, type Claim, type Workbench } from './workbench';

/** Claims deliveries in an execution of its own and gives their handles, as another workflow would get them. */
export async function claimHandles(workbench: Workbench, ids: string[], parameters: IDataObject = {}, executionId?: string): Promise<string[]> {
	const run = await workbench.run(guarded(claimNode(parameters)), { items: deliveries(...ids), executionId });
	return claimsOf(run, 'Claim', NEW_CLAIM).map(({ handle }) => String(handle));
}

/** Start → Complete → Done | Stale | Alarm. */
export function settling(parameters: IDataObject, settings: object = {}): TestWorkflow {
	return {
		nodes: {
			Start: { type: 'n8n-nodes-base.webhook' },
			Complete: completeNode(parameters, settings),
			Done: { type: 'n8n-nodes-base.noOp' },
			Stale: { type: 'n8n-nodes-base.noOp' },
			Alarm: { type: 'n8n-nodes-base.noOp' },
		},
		lines: ['Start -> Complete', 'Complete -> Done', 'Complete[1] -> Stale', 'Complete[2] -> Alarm'],
	};
}

/** Settles claims by handle, one item per handle. */
export async function settle(workbench: Workbench, handles: unknown[], parameters: IDataObject, options: RunOptions = {}): Promise<FinishedRun> {
	const items = handles.map((handle): INodeExecutionData => ({ json: { handle } as IDataObject }));
	return await workbench.run(settling({ claimFrom: 'handle', handle: '={{ $json.handle }}', ...parameters }), { items, ...options });
}

/** The answer of a run with one claim: its output and its claim field. */
export function answerOf(run: FinishedRun, node = 'Complete'): Claim & { output: number } {
	for (const output of [RECORDED, STALE_CLAIM, OPERATIONAL_ERROR]) {
		const [claim] = claimsOf(run, node, output);
		if (claim) return { ...claim, output };
	}
	throw new Error(`No item left ${node}: ${run.error?.message}`);
}
