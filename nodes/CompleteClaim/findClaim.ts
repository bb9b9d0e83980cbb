import type { IDataObject, IExecuteFunctions, INodeExecutionData, IPairedItemData, IRunData, ISourceData, ITaskData } from 'n8n-workflow';
import type { ClaimStore } from '../../store/claimStore';
import { invalidSetting } from '../../store/errors';
import { readHandle, type Ownership } from '../../store/handle';
import { DEFAULT_RESULT_FIELD } from '../shared/parameters';
import { isClaimField } from '../shared/claimField';
import { KNOWN_DUPLICATE, NEW_CLAIM } from '../IdempotentClaim/outputs';
import { isOurNode, type NodeRun } from '../shared/run';

/**
 * Finds the claim that an item belongs to ("Claim From: Upstream"): the item's own handle; item linking to the
 * nearest claiming node; the only claim that this execution has open. In doubt it refuses: settling the wrong
 * claim repeats an action.
 */
export class UpstreamClaims {
	private readonly runData: IRunData;
	private handlesOfExecution: Set<string> | undefined;
	private openClaims: Promise<Ownership[]> | undefined;

	constructor(
		private readonly context: IExecuteFunctions,
		private readonly run: NodeRun,
		private readonly store: ClaimStore,
	) {
		this.runData = run.runExecutionData?.resultData.runData ?? {};
	}

	/** @throws ClaimError `invalid_setting` when there is no such claim or it is not the only candidate; others as the store does */
	async claimOf(item: INodeExecutionData, itemIndex: number, resultField: string): Promise<Ownership> {
		const own = item.json[resultField];
		if (isClaimField(own) && typeof own.handle === 'string') return readHandle(own.handle);

		const trail = this.trace(itemIndex);
		if (trail.claims.length > 1) {
			throw invalidSetting('The item is linked to several claims', 'Complete each claim before its items are merged or aggregated, or give Complete Claim a handle.');
		}
		if (trail.claims.length === 1 && !trail.broken) {
			const [claim] = trail.claims;
			if (claim.handle === null) throw ownsNoClaim(claim.status);
			if (trail.throughCode && this.handles().size > 1) throw pairingNotGiven();
			return readHandle(claim.handle);
		}
		return await this.onlyClaimOfExecution();
	}

	private async onlyClaimOfExecution(): Promise<Ownership> {
		// Without pairing, an item that may come from a duplicate must not settle the claim of its neighbour.
		const other = this.outputsOnTheWay().find((output) => output !== NEW_CLAIM);
		if (other !== undefined) throw ownsNoClaim(other === KNOWN_DUPLICATE ? 'duplicate' : 'error');
		const handles = [...this.handles()];
		if (handles.length === 1) return readHandle(handles[0]);
		if (handles.length > 1) throw pairingNotGiven();
		this.openClaims ??= this.store.openClaimsOf(this.run.owner);
		const open = await this.openClaims;
		if (open.length === 1) return open[0];
		throw open.length === 0
			? invalidSetting('No claim was found for this item', 'Connect Complete Claim behind the New Claim output of Idempotent Claim. In a sub-workflow or another execution, hand on claim.handle and set Claim From to Handle.')
			: invalidSetting('This execution has several claims open, and the item does not say which is its own', 'Hand on the claim field with each item, or set Claim From to Handle.');
	}

	/** Every handle that this execution's claiming nodes gave. */
	private handles(): Set<string> {
		if (this.handlesOfExecution === undefined) {
			this.handlesOfExecution = new Set();
			for (const [nodeName, taskData] of Object.entries(this.runData)) {
				if (!this.isClaimingNode(nodeName)) continue;
				const items = taskData.flatMap(({ data }) => (data?.main ?? []).flatMap((output) => output ?? []));
				for (const item of items) {
					const handle = this.claimIn(nodeName, item)?.handle;
					if (typeof handle === 'string') this.handlesOfExecution.add(handle);
				}
			}
		}
		return this.handlesOfExecution;
	}

	/** Follows n8n's item linking back to the nearest claiming nodes. */
	private trace(itemIndex: number): Trail {
		const trail: Trail = { claims: [], broken: false, throughCode: false };
		const sources = this.context.getExecuteData().source?.main ?? [];
		const { pairedItem } = this.context.getInputData()[itemIndex];
		this.follow(pairedItem ?? { item: itemIndex }, sources, trail, new Set());
		return trail;
	}

	private follow(pairing: INodeExecutionData['pairedItem'], sources: Array<ISourceData | null>, trail: Trail, visited: Set<string>): void {
		if (pairing === undefined) {
			trail.broken = true;
			return;
		}
		for (const one of Array.isArray(pairing) ? pairing : [pairing]) {
			const link: IPairedItemData = typeof one === 'number' ? { item: one } : one;
			const source = link.sourceOverwrite ?? sources[link.input ?? 0];
			if (!source) {
				trail.broken = true;
				continue;
			}
			const { previousNode, previousNodeOutput = 0, previousNodeRun = 0 } = source;
			const step = JSON.stringify([previousNode, previousNodeRun, previousNodeOutput, link.item]);
			if (visited.has(step)) continue;
			visited.add(step);

			const task = this.runData[previousNode]?.[previousNodeRun];
			const items = task?.data?.main?.[previousNodeOutput];
			const item = items?.[link.item];
			if (task === undefined || !item) {
				trail.broken = true;
				continue;
			}
			const claim = this.isClaimingNode(previousNode) ? this.claimIn(previousNode, item) : undefined;
			if (claim !== undefined) {
				if (!trail.claims.some(({ handle }) => handle === claim.handle)) trail.claims.push(claim);
				continue;
			}
			if (this.isCodeForAllItems(previousNode) && isPairedByPosition(item, link.item) && this.hadSeveralItems(task)) trail.throughCode = true;
			this.follow(item.pairedItem, task.source, trail, visited);
		}
	}

	/** By which outputs of Idempotent Claim nodes anything came here, whatever its pairing. */
	private outputsOnTheWay(): number[] {
		const outputs: number[] = [];
		const visited = new Set<string>();
		const sources = [...(this.context.getExecuteData().source?.main ?? [])];
		for (let source = sources.pop(); source !== undefined; source = sources.pop()) {
			if (source === null) continue;
			const { previousNode, previousNodeOutput = 0, previousNodeRun = 0 } = source;
			const step = JSON.stringify([previousNode, previousNodeRun, previousNodeOutput]);
			if (visited.has(step)) continue;
			visited.add(step);
			if (isOurNode(this.run.workflowNodes[previousNode]?.type ?? '', 'idempotentClaim')) outputs.push(previousNodeOutput);
			else sources.push(...(this.runData[previousNode]?.[previousNodeRun]?.source ?? []));
		}
		return outputs;
	}

	/** Whether a node's run had more than one item to pair its output with. */
	private hadSeveralItems(task: ITaskData): boolean {
		return task.source.some((source) => {
			const items = source && this.runData[source.previousNode]?.[source.previousNodeRun ?? 0]?.data?.main?.[source.previousNodeOutput ?? 0];
			return (items?.length ?? 0) > 1;
		});
	}

	/** A node that makes claims. `receive` only stores: what is done with its items is not under its claim. */
	private isClaimingNode(nodeName: string): boolean {
		const node = this.run.workflowNodes[nodeName];
		if (node === undefined) return false;
		if (isOurNode(node.type, 'claimRecoveryTrigger')) return true;
		return isOurNode(node.type, 'idempotentClaim') && node.parameters.operation !== 'receive';
	}

	/** The claim field that this very node wrote into its item. */
	private claimIn(nodeName: string, item: INodeExecutionData): ClaimLink | undefined {
		const options = this.run.workflowNodes[nodeName]?.parameters.options as IDataObject | undefined;
		const field = options?.resultField ?? DEFAULT_RESULT_FIELD;
		// The name may be an expression; the node adds its field behind those that came in.
		const name = typeof field === 'string' && !field.startsWith('=') ? field : Object.keys(item.json).findLast((key) => isClaimField(item.json[key]));
		const claim = name === undefined ? undefined : item.json[name];
		return isClaimField(claim) ? { handle: claim.handle, status: claim.status } : undefined;
	}

	/**
	 * A Code node that ran once for all items. Where it gives no pairing, the engine pairs its items by position, so
	 * a Code node that returned them in another order would link each to the wrong claim.
	 */
	private isCodeForAllItems(nodeName: string): boolean {
		const node = this.run.workflowNodes[nodeName];
		if (node === undefined || !CODE_NODES.has(node.type)) return false;
		return (node.parameters.mode ?? 'runOnceForAllItems') === 'runOnceForAllItems';
	}
}

const CODE_NODES = new Set(['n8n-nodes-base.code', 'n8n-nodes-base.function', 'n8n-nodes-base.aiTransform']);

interface ClaimLink {
	handle: string | null;
	status: string;
}

interface Trail {
	claims: ClaimLink[];
	broken: boolean;
	/** Whether a link on the way may be the engine's guess. */
	throughCode: boolean;
}

/** How the engine pairs what came without pairing: item N with item N, or the only one with the first. */
function isPairedByPosition({ pairedItem }: INodeExecutionData, position: number): boolean {
	return pairedItem !== null && typeof pairedItem === 'object' && !Array.isArray(pairedItem) && pairedItem.item === position && pairedItem.input === undefined;
}

function ownsNoClaim(status: string) {
	const from = status === 'duplicate' ? 'Known Duplicate' : 'Operational Error';
	return invalidSetting(`The item comes from ${from}: it owns no claim`, 'Connect Complete Claim behind New Claim only.');
}

function pairingNotGiven() {
	return invalidSetting(
		'This execution has several claims, and a node in between hands on neither the claim nor a reliable item pairing',
		'In a Code node return the claim with each item: { json: { ...yourFields, claim: item.json.claim } }, or pairedItem as a number.',
	);
}
