import type { IDataObject, IExecuteFunctions, INodeExecutionData, IPairedItemData, IRunData, ISourceData, ITaskData } from 'n8n-workflow';
import type { ClaimStore } from '../../store/claimStore';
import { invalidSetting, type ClaimError } from '../../store/errors';
import { readHandle, type Ownership } from '../../store/handle';
import { isClaimField } from '../shared/claimField';
import { DEFAULT_RESULT_FIELD } from '../shared/parameters';
import { isOurNode, type NodeRun } from '../shared/run';

/**
 * Finds the claim that an item belongs to ("Claim From: Upstream"): the item's own handle; item linking to the
 * nearest claiming node; the only claim that this execution has open. In doubt it refuses: settling the wrong
 * claim repeats an action.
 */
export class UpstreamClaims {
	private readonly runData: IRunData;
	private readonly traces = new Map<string, Trail>();
	private handlesOfExecution: Set<string> | undefined;
	private openClaims: Promise<Ownership[]> | undefined;

	constructor(
		private readonly context: IExecuteFunctions,
		private readonly run: NodeRun,
		private readonly store: () => Promise<ClaimStore>,
	) {
		this.runData = run.runExecutionData?.resultData.runData ?? {};
	}

	/** @throws ClaimError `invalid_setting` when there is no such claim or it is not the only candidate; others as the store does */
	async claimOf(item: INodeExecutionData, itemIndex: number, resultField: string): Promise<Ownership> {
		const own = this.ownHandle(item, resultField);
		if (own !== undefined) return readHandle(own);

		const sources = this.context.getExecuteData().source?.main ?? [];
		const pairing = this.context.getInputData()[itemIndex].pairedItem ?? { item: itemIndex };
		const { claims, guessed } = this.follow(pairing, sources);
		const links = [...claims.values()];
		if (links.length === 0) return await this.onlyClaimOfExecution();
		if (links.length > 1) throw guessed ? pairingNotGiven() : linkedToSeveral();
		if (links[0].handle === null) throw ownsNoClaim(links[0].status);
		return readHandle(links[0].handle);
	}

	/**
	 * The handle in the item itself. Where this execution made claims it must be one of theirs: what a sender puts
	 * into a body must not settle somebody else's claim.
	 */
	private ownHandle(item: INodeExecutionData, resultField: string): string | undefined {
		const given = this.handles();
		for (const field of [resultField, DEFAULT_RESULT_FIELD]) {
			const claim = Object.hasOwn(item.json, field) ? item.json[field] : undefined;
			if (isClaimField(claim) && typeof claim.handle === 'string' && (given.size === 0 || given.has(claim.handle))) return claim.handle;
		}
		return undefined;
	}

	/** For an item whose way here leads past no claiming node: another branch, or a sub-workflow. */
	private async onlyClaimOfExecution(): Promise<Ownership> {
		if (this.handles().size > 1) throw pairingNotGiven();
		this.openClaims ??= this.store().then(async (store) => await store.openClaimsOf(this.run.owner));
		const open = await this.openClaims;
		if (open.length === 1) return open[0];
		throw open.length === 0
			? invalidSetting('No open claim was found for this item', 'Connect Complete Claim behind the New Claim output of Idempotent Claim, or behind Claim Recovery Trigger. In a sub-workflow or another execution, hand on claim.handle and set Claim From to Handle.')
			: invalidSetting('This execution has several claims open, and the item does not say which is its own', 'Hand on the claim field with each item, or set Claim From to Handle.');
	}

	/** Every handle that this execution's claiming nodes gave. */
	private handles(): Set<string> {
		if (this.handlesOfExecution === undefined) {
			this.handlesOfExecution = new Set();
			for (const [nodeName, tasks] of Object.entries(this.runData)) {
				if (!this.isClaimingNode(nodeName)) continue;
				for (const item of tasks.flatMap(({ data }) => (data?.main ?? []).flatMap((output) => output ?? []))) {
					const handle = this.claimIn(nodeName, item)?.handle;
					if (typeof handle === 'string') this.handlesOfExecution.add(handle);
				}
			}
		}
		return this.handlesOfExecution;
	}

	/** The claims that an item's pairing leads back to. */
	private follow(pairing: INodeExecutionData['pairedItem'], sources: Array<ISourceData | null>): Trail {
		if (pairing === undefined) return this.guess(sources);
		const links = (Array.isArray(pairing) ? pairing : [pairing]).map((link): IPairedItemData => (typeof link === 'number' ? { item: link } : link));
		return union(
			links.map((link) => {
				const source = link.sourceOverwrite ?? sources[link.input ?? 0];
				return source ? this.trace(source, link.item) : this.guess(sources);
			}),
		);
	}

	/** Without a pairing that can be trusted, an item may come from any item that went into its node. */
	private guess(sources: Array<ISourceData | null>): Trail {
		const all = sources.flatMap((source) => (source === null ? [] : this.itemsOf(source).map((_, index) => this.trace(source, index))));
		return { ...union(all), guessed: true };
	}

	/** The claims that one item of a node's output leads back to; each is looked up once. */
	private trace(source: ISourceData, index: number): Trail {
		const step = JSON.stringify([source.previousNode, source.previousNodeRun ?? 0, source.previousNodeOutput ?? 0, index]);
		const known = this.traces.get(step);
		if (known !== undefined) return known;
		// What leads back to itself adds nothing.
		this.traces.set(step, NO_CLAIM);
		const trail = this.traceAnew(source, index);
		this.traces.set(step, trail);
		return trail;
	}

	private traceAnew(source: ISourceData, index: number): Trail {
		const { previousNode } = source;
		const task = this.runData[previousNode]?.[source.previousNodeRun ?? 0];
		const item = this.itemsOf(source)[index];
		if (task === undefined || item === undefined) return NO_CLAIM;
		if (this.isClaimingNode(previousNode)) {
			const claim = this.claimIn(previousNode, item);
			return claim === undefined ? NO_CLAIM : { claims: new Map([[claim.handle ?? claim.status, claim]]), guessed: false };
		}
		const mayBeGuessed = this.isCodeForAllItems(previousNode) && isPairedByPosition(item, index) && task.source.some((from) => from !== null && this.itemsOf(from).length > 1);
		return mayBeGuessed ? this.guess(task.source) : this.follow(item.pairedItem, task.source);
	}

	private itemsOf({ previousNode, previousNodeRun = 0, previousNodeOutput = 0 }: ISourceData): INodeExecutionData[] {
		const task: ITaskData | undefined = this.runData[previousNode]?.[previousNodeRun];
		return task?.data?.main?.[previousNodeOutput] ?? [];
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
	 * A Code node that ran once for all items. Where it gives no pairing, the engine pairs by position, so items that
	 * it returned in another order would be linked to the wrong claims.
	 */
	private isCodeForAllItems(nodeName: string): boolean {
		const node = this.run.workflowNodes[nodeName];
		return node !== undefined && CODE_NODES.has(node.type) && (node.parameters.mode ?? 'runOnceForAllItems') === 'runOnceForAllItems';
	}
}

const CODE_NODES = new Set(['n8n-nodes-base.code', 'n8n-nodes-base.function', 'n8n-nodes-base.aiTransform']);

interface ClaimLink {
	/** null when the item owns no claim: it left by Known Duplicate or Operational Error. */
	handle: string | null;
	status: string;
}

interface Trail {
	/** By handle, or by status where there is none. */
	claims: ReadonlyMap<string, ClaimLink>;
	/** Whether any step had no pairing that can be trusted. */
	guessed: boolean;
}

const NO_CLAIM: Trail = { claims: new Map(), guessed: false };

function union(trails: readonly Trail[]): Trail {
	return { claims: new Map(trails.flatMap(({ claims }) => [...claims])), guessed: trails.some(({ guessed }) => guessed) };
}

/** How the engine pairs what came without pairing: item N with item N, or the only one with the first. */
function isPairedByPosition({ pairedItem }: INodeExecutionData, position: number): boolean {
	if (pairedItem === undefined) return true;
	return typeof pairedItem === 'object' && !Array.isArray(pairedItem) && pairedItem.item === position && pairedItem.input === undefined;
}

function linkedToSeveral(): ClaimError {
	return invalidSetting('The item is linked to several claims', 'Complete each claim before its items are merged or aggregated, or give Complete Claim a handle.');
}

function ownsNoClaim(status: string): ClaimError {
	const from = status === 'duplicate' ? 'Known Duplicate' : 'Operational Error';
	return invalidSetting(`The item comes from ${from}: it owns no claim`, 'Connect Complete Claim behind New Claim only.');
}

function pairingNotGiven(): ClaimError {
	return invalidSetting(
		'The item may belong to several claims: a node in between hands on neither the claim nor a reliable item pairing',
		'In a Code node return the claim with each item: { json: { ...yourFields, claim: item.json.claim } }, or pairedItem as a number.',
	);
}
