import { randomBytes } from 'node:crypto';
import type { ClaimStore } from '../../store/claimStore';
import type { Identity } from '../../store/identity';
import { NO_PAYLOAD } from '../../store/payload';
import type { Owner } from '../../store/record';
import { anOutcome, aRequest } from '../store/support/claims';
import { answerDifferences, rowDifferences, SEEN_COLUMNS, seenClaim, seenDecision, seenOutcome, type SeenAnswer, type SeenRow } from './comparison';
import type { Environment } from './contract';
import { brokenInvariants, type Verdict } from './invariants';
import type { Lane } from './lane';
import { apply, purgeOf, type Action, type Answer, type Decided, type Delivery, type Outcome, type Pair, type PutBack, type Record_ } from './model';
import { DELIVERIES, STORES, type Again, type Call, type Come, type Decide, type Fault, type GiveBack, type HistoryStep, type Say, type Whose } from './steps';

/** Runs a history against the stores and the model side by side, and tells it as a story. */

/** How often each row of the contract's tables gave the answer. */
export type Coverage = Map<string, number>;

/** @throws Error with the story so far and what differs from the contract */
export async function runHistory(lane: Lane, steps: readonly HistoryStep[], coverage: Coverage): Promise<void> {
	const history = new History(lane, coverage);
	for (const step of steps) await history.run(step);
}

/** Each passing of time adds this, so that no two instants are ever closer than real time could blur. */
const ODD_SECONDS = 5;
const MAX_PASSINGS = 10;
const ENVIRONMENTS = ['live', 'test'] as const;
const COMPLETING_NODE = 'Complete Claim';

/** One item of a call, for store and model. */
interface Item {
	delivery: number;
	action: Action;
}

/** A call with everything looked up that its step refers to. */
interface PreparedCall {
	words: string;
	items: Item[];
	store: number;
	fault: Fault | null;
	send: (store: ClaimStore) => Promise<SeenAnswer[]>;
	/** What is remembered of the answers. */
	heard: (answers: SeenAnswer[]) => void;
}

/** A call of Idempotent Claim, as Retry On Fail may repeat it. */
interface ClaimCall {
	words: string;
	step: Come;
	owner: Owner;
	claims: Array<{ delivery: number; claim: Delivery }>;
	/** What the run may have to give back; null once somebody has worked with its claims. */
	mayOwn: number[] | null;
}

interface Handle {
	delivery: number;
	environment: Environment;
	token: string;
	version: number;
	execution: string;
}

/** An item of a step for one delivery, with its place among the step's items. */
interface PlacedAction {
	action: Action;
	place: number;
}

/** One order in which the items of a step may have been carried out, for one delivery. */
interface Candidate {
	pair: Pair;
	/** By the place of the item in the step; `perhaps`: or an error that leaves open whether it was carried out. */
	answers: Map<number, { expected: Answer; perhaps: 'carriedOut' | 'notCarriedOut' | null; changed: boolean }>;
}

class History {
	private readonly id = randomBytes(6).toString('hex');
	private now = 0;
	private passings = 0;
	private pairs: Pair[] = DELIVERIES.map(() => ({ live: null, test: null }));
	private rows = new Map<string, SeenRow>();
	private readonly calls: ClaimCall[] = [];
	private readonly handles: Handle[] = [];
	private executions = 0;
	private tokens = 0;
	private last: { execution: string; node: string } | undefined;
	private readonly story: string[] = [];

	constructor(
		private readonly lane: Lane,
		private readonly coverage: Coverage,
	) {}

	async run(step: HistoryStep): Promise<void> {
		switch (step.kind) {
			case 'come':
			case 'again':
			case 'say':
			case 'giveBack':
			case 'decide': {
				const call = this.prepare(step);
				if (call) await this.runCalls([call]);
				return;
			}
			case 'both': {
				const calls = together([this.prepare(step.one), this.prepare(step.other)].filter((call) => call !== null), step.held !== null);
				if (calls.length > 0) await this.runCalls(calls, step.held);
				return;
			}
			case 'timePasses':
				return await this.timePasses(step.minutes);
			case 'purge':
				return await this.purge(step);
			case 'delete': {
				const { delivery, environment } = step;
				if (this.pairs[delivery][environment] === null) return;
				return await this.delete(delivery, environment);
			}
		}
	}

	// Calls

	private prepare(step: Call): PreparedCall | null {
		switch (step.kind) {
			case 'come':
				return this.prepareCome(step);
			case 'again':
				return this.prepareAgain(step);
			case 'say':
				return this.prepareSay(step);
			case 'giveBack':
				return this.prepareGiveBack(step);
			case 'decide':
				return this.prepareDecide(step);
		}
	}

	private prepareCome(step: Come): PreparedCall {
		const { operation, environment, deliveries, settings } = step;
		const sameExecution = step.by !== 'a new execution' && this.last;
		const execution = sameExecution ? sameExecution.execution : this.newExecution();
		const lastNode = sameExecution ? sameExecution.node : 'Claim A';
		const node = step.by === 'another node of the last execution' && sameExecution ? (lastNode === 'Claim A' ? 'Claim B' : 'Claim A') : lastNode;
		const claims = deliveries.map((delivery) => {
			const token = `${this.id}-t${++this.tokens}`;
			// What is recorded as completed at once needs no payload.
			const payload = settings.payload && operation !== 'deduplicate';
			return { delivery, claim: { ...settings, environment, operation, execution, node, token, payload } };
		});
		const words = `${deliveries.map((delivery) => nameOf(delivery, environment)).join(', ')}: ${operation} by ${this.short(execution)} "${node}"${inWords(settings)}`;
		return this.claimCall({ words, step, owner: this.ownerOf(execution, node), claims, mayOwn: [] }, step.store, step.fault);
	}

	private prepareAgain(step: Again): PreparedCall | null {
		const call = this.calls.at(-1 - step.back);
		return call ? this.claimCall(call, step.store, step.fault) : null;
	}

	private claimCall(call: ClaimCall, store: number, fault: Fault | null): PreparedCall {
		const isRetry = this.calls.includes(call);
		const requests = call.claims.map(({ delivery, claim }) =>
			aRequest({
				identity: this.identityOf(delivery, claim.environment),
				ownerToken: claim.token,
				fingerprint: claim.fingerprint,
				payloadMismatch: claim.mismatchIsAnError ? 'operationalError' : 'knownDuplicate',
				payload: claim.payload ? { json: '{"lead":1}', complete: true } : NO_PAYLOAD,
				leaseSeconds: claim.leaseSeconds,
				whenLeaseExpires: claim.whenLeaseExpires,
				maxAttempts: claim.maxAttempts,
				retentionDays: claim.retentionDays,
				takenAnewEachRun: claim.takenAnewEachRun,
			}),
		);
		return {
			words: isRetry ? `again, with the same tokens: ${call.words}` : call.words,
			items: call.claims.map(({ delivery, claim }) => ({ delivery, action: { kind: 'claim', claim } })),
			store,
			fault,
			send: async (claimStore) => (await claimStore.claim(call.step.operation, call.owner, requests)).map(seenClaim),
			heard: (answers) => {
				if (isRetry) this.calls.splice(this.calls.indexOf(call), 1);
				this.calls.push(call);
				this.last = { execution: call.owner.executionId, node: call.owner.nodeName };
				const given: number[] = [];
				answers.forEach(({ verdict, reason, record }, index) => {
					const unknown = verdict === 'error' && reason === 'outcome_unknown';
					if (call.step.operation === 'receive' || (verdict !== 'new' && !unknown)) return;
					const { delivery, claim } = call.claims[index];
					given.push(index);
					this.handles.push({ delivery, environment: claim.environment, token: claim.token, version: record?.version ?? 1, execution: claim.execution });
				});
				if (call.mayOwn !== null) call.mayOwn = given;
			},
		};
	}

	private prepareSay(step: Say): PreparedCall | null {
		const handles = step.whose.flatMap((whose) => this.handleOf(whose) ?? []);
		if (handles.length === 0) return null;
		const execution = step.fromElsewhere ? this.newExecution() : handles[0].execution;
		const caller = this.ownerOf(execution, COMPLETING_NODE);
		const { outcome, reason, keepPayload, retryAfterSeconds, leaseSeconds } = step;
		const reference = outcome === 'extendLease' ? null : step.reference;
		const result = step.result === null ? null : { score: step.result };
		const outcomes = handles.map(({ environment, token, version }): Outcome => ({
			environment, token, version, outcome, reference, reason, result, keepPayload, retryAfterSeconds, leaseSeconds, execution, node: COMPLETING_NODE,
		}));
		const requests = handles.map(({ delivery, environment, token: ownerToken, version }) =>
			anOutcome({ identity: this.identityOf(delivery, environment), ownerToken, version }, { reference, reason, result: result && JSON.stringify(result), keepPayload, retryAfterSeconds, leaseSeconds }),
		);
		const details = [
			reference && `reference ${reference}`,
			outcome === 'retryableFailure' && `again after ${retryAfterSeconds} s`,
			outcome === 'extendLease' && `by ${leaseSeconds} s`,
			keepPayload && 'payload kept',
		].filter(Boolean);
		return {
			words: `${this.short(execution)} says ${outcome} of ${handles.map((handle) => this.handleInWords(handle)).join(', ')}${details.length > 0 ? ` (${details.join(', ')})` : ''}`,
			items: handles.map(({ delivery }, index) => ({ delivery, action: { kind: 'settle', settle: outcomes[index] } })),
			store: step.store,
			fault: step.fault,
			send: async (store) => (await store.settle(outcome, caller, requests)).map(seenOutcome),
			heard: () => {
				this.last = { execution, node: COMPLETING_NODE };
				for (const call of this.calls) if (call.claims.some(({ claim }) => handles.some(({ token }) => token === claim.token))) call.mayOwn = null;
			},
		};
	}

	private handleOf(whose: Whose): Handle | undefined {
		if (whose.of === 'any owner') return this.handles.at(-1 - whose.back);
		const { delivery, environment } = whose;
		if (whose.of === 'nobody') return { delivery, environment, token: `${this.id}-made-up`, version: 1, execution: this.last?.execution ?? this.newExecution() };
		const current = this.pairs[delivery][environment]?.token;
		const handles = this.handles.filter((handle) => handle.delivery === delivery && handle.environment === environment && (handle.token === current) === (whose.of === 'the current owner'));
		return handles.at(whose.of === 'a replaced owner' ? -1 - whose.back : -1);
	}

	private prepareGiveBack(step: GiveBack): PreparedCall | null {
		const call = this.calls.at(-1 - step.back);
		if (!call?.mayOwn?.length) return null;
		const claims = call.mayOwn.map((index) => call.claims[index]);
		const { executionId: execution, nodeName: node } = call.owner;
		const reason = 'The execution failed at this node';
		const putBacks = claims.map(({ claim: { environment, token } }): PutBack => ({ environment, token, execution, node, reason }));
		return {
			words: `${this.short(execution)} gives back ${claims.map(({ delivery, claim }) => `${nameOf(delivery, claim.environment)} (${this.short(claim.token)})`).join(', ')}`,
			items: claims.map(({ delivery }, index) => ({ delivery, action: { kind: 'putBack', putBack: putBacks[index] } })),
			store: step.store,
			fault: step.fault,
			send: async (store) => {
				await store.putBack(call.owner, claims.map(({ delivery, claim }) => ({ identity: this.identityOf(delivery, claim.environment), ownerToken: claim.token })), reason);
				return claims.map(() => ({ verdict: 'done', reason: null, payloadChanged: null, record: null }));
			},
			heard: () => {
				if (call.mayOwn !== null) call.mayOwn = [];
			},
		};
	}

	private prepareDecide(step: Decide): PreparedCall | null {
		const { delivery, environment, decision } = step;
		const row = this.rows.get(this.keyOf(delivery, environment));
		const record = this.pairs[delivery][environment];
		if (row === undefined || record === null) return null;
		const decided: Decided = {
			environment,
			seen: { token: record.token, version: record.version, state: record.state },
			decision,
			by: 'Operator',
			reason: 'Looked at the destination',
			reference: decision === 'completed' ? step.reference : null,
		};
		const seen = { identity: this.identityOf(delivery, environment), ownerToken: row.owner_token, version: record.version, state: record.state };
		return {
			words: `an operator decides on ${nameOf(delivery, environment)}, ${record.state}: ${decision}${decided.reference ? ` (reference ${decided.reference})` : ''}`,
			items: [{ delivery, action: { kind: 'decide', decide: decided } }],
			store: step.store,
			fault: step.fault,
			send: async (store) => [seenDecision(await store.resolve({ seen, resolution: decision, reference: decided.reference, decidedBy: decided.by, reason: decided.reason }))],
			heard: () => {},
		};
	}

	/** Sends one call, or two at once, and compares answers and rows with what the contract's tables make of them. */
	private async runCalls(calls: PreparedCall[], held: Fault['at'] | null = null): Promise<void> {
		const concurrent = calls.length > 1;
		const words = calls.map(({ words: each, ...call }) => `store ${storeOf(call) + 1}${faultInWords(call.fault)}: ${each}`);
		const fault = calls.find((call) => call.fault !== null)?.fault ?? null;
		const sendings = calls.map((call) => async () => await call.send(call.fault?.serverGone ? this.lane.impatient : this.lane.stores[storeOf(call)]));
		const isHeld = concurrent && held !== null;
		const answers = isHeld ? await this.lane.withHeld(held, sendings[0], sendings[1]) : await this.lane.withFault(fault, async () => await Promise.all(sendings.map(async (send) => await send())));
		calls.forEach((call, index) => {
			this.story.push(`${concurrent ? (isHeld ? (index === 0 ? `held before ${held} ` : '\tmeanwhile ') : index === 0 ? 'at once ' : '\tand ') : ''}${words[index]}\n\t\t→ ${answers[index].map(answerInWords).join(', ')}`);
			if (answers[index].length !== call.items.length) this.fail([`${answers[index].length} answers to ${call.items.length} items`]);
		});
		calls.forEach((call, index) => call.heard(answers[index]));

		const before = this.rows;
		await this.readRows();
		const seen = answers.flat();
		const items = calls.flatMap(({ items: each }, call) => each.map((item) => ({ ...item, call })));
		const troubles = DELIVERIES.flatMap((_name, delivery) => {
			const sequences = calls.flatMap((_call, call) => inTheirOrder(items.flatMap((item, place) => (item.delivery === delivery && item.call === call ? [{ action: item.action, place }] : []))));
			return this.adopt(delivery, sequences, seen, fault?.serverGone ?? false);
		});
		const verdicts = items.map(({ delivery, action }, place): Verdict => ({ ...whoOf(action), kind: action.kind, identity: this.keyOf(delivery, environmentOf(action)), seen: seen[place] }));
		const reopening = items.filter(({ action }) => action.kind === 'putBack' || (action.kind === 'claim' && action.claim.takenAnewEachRun && action.claim.environment === 'test'));
		const mayReopen = new Set(reopening.map(({ delivery, action }) => this.keyOf(delivery, environmentOf(action))));
		this.fail([...troubles, ...brokenInvariants({ before, after: this.rows, verdicts, concurrent, mayReopen, purges: false })]);
	}

	/** Takes over the first order of the items that explains answers and rows; otherwise says what differs. */
	private adopt(delivery: number, sequences: PlacedAction[][], seen: SeenAnswer[], serverGone: boolean): string[] {
		const orders = interleavings(sequences);
		const candidates = serverGone ? partsOf(orders[0]).map((part) => this.carryOut(delivery, orders[0], part)) : orders.map((order) => this.carryOut(delivery, order));
		const differing = candidates.map((candidate) => [...candidate.answers].flatMap(([place, expected]) => explains(expected, seen[place])).concat(this.rowTroubles(delivery, candidate.pair)));
		const fitting = differing.findIndex((each) => each.length === 0);
		if (fitting >= 0) {
			const { pair, answers } = candidates[fitting];
			this.pairs[delivery] = pair;
			for (const { expected, perhaps } of answers.values()) if (perhaps !== 'notCarriedOut') this.coverage.set(expected.row, (this.coverage.get(expected.row) ?? 0) + 1);
			return [];
		}
		return differing.flatMap((each, index) => {
			const order = differing.length > 1 ? ` (if carried out in order ${index + 1})` : '';
			const tables = [...candidates[index].answers.values()].map(({ expected }) => `${expected.verdict} ${expected.reason ?? ''} by "${expected.row}"`).join('; ');
			return [`${DELIVERIES[delivery]}${order}: the contract says ${tables}`, ...each.map((text) => `\t${text}`)];
		});
	}

	/** @param part the places of the items that were carried out; left out: all, and all were answered */
	private carryOut(delivery: number, order: readonly PlacedAction[], part?: ReadonlySet<number>): Candidate {
		let pair = this.pairs[delivery];
		const answers: Candidate['answers'] = new Map();
		for (const { action, place } of order) {
			const { answer, pair: next } = apply(pair, action, this.now);
			const carriedOut = part?.has(place) ?? true;
			const isChange = JSON.stringify(next) !== JSON.stringify(pair) || answer.verdict === 'new';
			answers.set(place, { expected: answer, perhaps: part === undefined ? null : carriedOut ? 'carriedOut' : 'notCarriedOut', changed: isChange });
			if (carriedOut) pair = next;
		}
		return { pair, answers };
	}

	// Everything else

	private async timePasses(minutes: number): Promise<void> {
		if (this.passings === MAX_PASSINGS) return;
		this.passings++;
		const seconds = minutes * 60 + ODD_SECONDS;
		this.now += seconds;
		const moved = ['lease_expires_at', 'retry_at', 'first_seen_at', 'updated_at', 'purge_after', 'outcome_recorded_at'].map((column) => `${column} = ${column} - make_interval(secs => $2)`);
		await this.lane.query(`UPDATE ${this.lane.table} SET ${moved.join(', ')} WHERE delivery_id = ANY($1)`, [this.ids, seconds]);
		this.story.push(`${minutes} minutes pass`);
		await this.readRows();
	}

	private async purge({ what, store }: Extract<HistoryStep, { kind: 'purge' }>): Promise<void> {
		await this.lane.stores[store].purge({ what, limit: 1_000_000 }, false);
		this.story.push(`store ${store + 1} purges ${what === 'allTests' ? 'all test claims' : 'claims past their retention'}`);
		const before = this.rows;
		await this.readRows();
		const troubles: string[] = [];
		this.pairs = this.pairs.map((pair, delivery) => {
			const kept = (environment: Environment): Record_ | null => {
				const record = pair[environment];
				if (record === null) return null;
				const isGone = !this.rows.has(this.keyOf(delivery, environment));
				const purge = what === 'pastRetention' ? purgeOf(record, environment, this.now) : environment === 'test' ? 'certainly' : 'never';
				if (isGone ? purge === 'never' : purge === 'certainly') troubles.push(`${nameOf(delivery, environment)}: ${isGone ? 'forgotten, and may not be' : 'not forgotten'}`);
				return isGone ? null : record;
			};
			return { live: kept('live'), test: kept('test') };
		});
		this.expectRows(before, true, troubles);
	}

	private async delete(delivery: number, environment: Environment): Promise<void> {
		await this.lane.query(`DELETE FROM ${this.lane.table} WHERE delivery_id = $1 AND environment = $2`, [this.idOf(delivery), environment]);
		this.story.push(`the row of ${nameOf(delivery, environment)} is deleted by hand`);
		this.pairs[delivery] = { ...this.pairs[delivery], [environment]: null };
		const before = this.rows;
		await this.readRows();
		this.expectRows(before, true);
	}

	// Rows

	private async readRows(): Promise<void> {
		const rows = await this.lane.query<SeenRow>(`SELECT ${SEEN_COLUMNS} FROM ${this.lane.table} WHERE delivery_id = ANY($1)`, [this.ids]);
		this.rows = new Map(rows.map((row) => [`${row.delivery_id} ${row.environment}`, row]));
	}

	private rowTroubles(delivery: number, pair: Pair): string[] {
		return ENVIRONMENTS.flatMap((environment) => rowDifferences(pair[environment], this.rows.get(this.keyOf(delivery, environment)), environment, this.now));
	}

	private expectRows(before: ReadonlyMap<string, SeenRow>, purges: boolean, troubles: string[] = []): void {
		const differing = this.pairs.flatMap((pair, delivery) => this.rowTroubles(delivery, pair).map((text) => `${DELIVERIES[delivery]}: ${text}`));
		this.fail([...troubles, ...differing, ...brokenInvariants({ before, after: this.rows, verdicts: [], concurrent: false, mayReopen: new Set(), purges })]);
	}

	// Names

	private newExecution(): string {
		return `${this.id}-e${++this.executions}`;
	}

	private ownerOf(executionId: string, node: string): Owner {
		return { instanceId: 'instance', workflowId: 'workflow', executionId, nodeId: node, nodeName: node };
	}

	private idOf(delivery: number): string {
		return `${this.id}-${DELIVERIES[delivery]}`;
	}

	private get ids(): string[] {
		return DELIVERIES.map((_name, delivery) => this.idOf(delivery));
	}

	private identityOf(delivery: number, environment: Environment): Identity {
		return { deliveryId: this.idOf(delivery), source: 'shop', account: '', action: 'create-lead', environment };
	}

	private keyOf(delivery: number, environment: Environment): string {
		return `${this.idOf(delivery)} ${environment}`;
	}

	private short(text: string): string {
		return text.replaceAll(`${this.id}-`, '');
	}

	private handleInWords({ delivery, environment, token, version }: Handle): string {
		const current = this.pairs[delivery][environment]?.token === token ? 'its own' : 'a replaced';
		return `${current} ${nameOf(delivery, environment)} (${this.short(token)}, version ${version})`;
	}

	private fail(troubles: readonly string[]): void {
		if (troubles.length === 0) return;
		const lines = [...this.story.map((line, index) => `${String(index + 1).padStart(2)}. ${line}`), '', 'After the last step:', ...troubles.map((text) => `\t${text}`)];
		throw new Error(this.short(lines.join('\n')));
	}
}

/** What two calls at once may be; where no order of the two could explain what is right, only the first. */
function together(calls: PreparedCall[], held: boolean): PreparedCall[] {
	if (calls.length < 2) return calls;
	const kinds = calls.map(({ items }) => items[0].action.kind);
	// Nobody has a run's handles yet while it gives its claims back.
	if (kinds.includes('putBack') && kinds.some((kind) => kind !== 'claim')) return [calls[0]];
	// A statement that is sent twice, with the other's change in between, meets that. Without consequence only among copies of a claim.
	const mayLoseAnswers = calls.every(({ items }) => items.every(({ action }) => action.kind === 'claim' && action.claim.operation !== 'receive' && !(action.claim.takenAnewEachRun && action.claim.environment === 'test')));
	if (held) {
		const [through, beside] = calls.map((call) => ({ ...call, fault: null }));
		return [{ ...through, store: STORES - 1 }, { ...beside, store: beside.store % (STORES - 1) }];
	}
	const [one, other] = calls.map((call) => ({ ...call, fault: mayLoseAnswers && call.fault && !call.fault.serverGone ? call.fault : null }));
	const second = { ...other, fault: one.fault ? null : other.fault };
	return [one, storeOf(one) === storeOf(second) ? { ...second, store: (storeOf(one) + 1) % STORES } : second];
}

/** A fault needs a store whose line goes through the proxy. */
function storeOf({ store, fault }: Pick<PreparedCall, 'store' | 'fault'>): number {
	return fault === null ? store : STORES - 1;
}

/** The items of one call whose order is sure. Outcomes are recorded row by row, in whatever order, and do not look at another environment's row. */
function inTheirOrder(items: PlacedAction[]): PlacedAction[][] {
	if (items.some(({ action }) => action.kind !== 'settle')) return [items];
	return perEnvironment(items);
}

/** All orders in which the sequences may be mixed. */
function interleavings<T>(sequences: readonly T[][]): T[][] {
	const left = sequences.filter(({ length }) => length > 0);
	if (left.length === 0) return [[]];
	return left.flatMap((sequence) => interleavings(left.map((each) => (each === sequence ? each.slice(1) : each))).map((rest) => [sequence[0], ...rest]));
}

/** What a server that goes may have carried out: of each identity's items any beginning. */
function partsOf(order: readonly PlacedAction[]): Array<Set<number>> {
	const beginnings = perEnvironment(order).map((items) => {
		const places = items.map(({ place }) => place);
		return [...places, null].map((_place, count) => places.slice(0, count));
	});
	return beginnings[0].flatMap((live) => beginnings[1].map((test) => new Set([...live, ...test])));
}

/** What an item's answer says that the model does not. */
function explains({ expected, perhaps, changed }: { expected: Answer; perhaps: 'carriedOut' | 'notCarriedOut' | null; changed: boolean }, seen: SeenAnswer): string[] {
	const exactly = answerDifferences(expected, seen);
	if (perhaps === null) return exactly;
	if (perhaps === 'carriedOut' && exactly.length === 0) return [];
	const unanswered = seen.verdict === 'error' ? seen.reason : null;
	// The other kinds say that certainly nothing was written.
	const isRight = unanswered === 'outcome_unknown' || (['store_unreachable', 'store_busy'].includes(unanswered ?? '') && !(perhaps === 'carriedOut' && changed));
	return isRight ? [] : [...exactly, `and it is not an error that fits a server that is gone: ${answerInWords(seen)}`];
}

/** The items of each environment, in the order that they have. */
function perEnvironment(items: readonly PlacedAction[]): PlacedAction[][] {
	return ENVIRONMENTS.map((environment) => items.filter(({ action }) => environmentOf(action) === environment));
}

function environmentOf(action: Action): Environment {
	return whoOf(action).environment;
}

function whoOf(action: Action): { environment: Environment; token: string; execution: string } {
	if (action.kind === 'decide') return { environment: action.decide.environment, token: '', execution: '' };
	const { environment, token, execution } = action.kind === 'claim' ? action.claim : action.kind === 'settle' ? action.settle : action.putBack;
	return { environment, token, execution };
}

function nameOf(delivery: number, environment: Environment): string {
	return `${DELIVERIES[delivery]} ${environment}`;
}

function answerInWords({ verdict, reason, record }: SeenAnswer): string {
	return `${verdict}${reason ? ` ${reason}` : ''}${record ? ` (${record.state}, version ${record.version}, attempt ${record.attempt})` : ''}`;
}

function faultInWords(fault: Fault | null): string {
	if (fault === null) return '';
	const what = fault.fate === 'loseAnswer' ? `loses the answer to ${fault.at}` : `is cut before ${fault.at}`;
	return ` (${what}${fault.times === 1 ? '' : fault.serverGone ? ', after a lost answer to INSERT INTO' : ', twice'}${fault.serverGone ? ', then the server is gone' : ''})`;
}

function inWords({ leaseSeconds, whenLeaseExpires, maxAttempts, retentionDays, takenAnewEachRun, fingerprint, mismatchIsAnError, payload }: Come['settings']): string {
	const details = [
		`lease ${leaseSeconds} s`,
		whenLeaseExpires,
		`${maxAttempts} attempts`,
		retentionDays !== 30 && `kept ${retentionDays} days`,
		takenAnewEachRun && 'test claims always new',
		fingerprint,
		mismatchIsAnError && 'a mismatch is an error',
		payload && 'with payload',
	];
	return ` (${details.filter(Boolean).join(', ')})`;
}
