import type { ClaimAnswer } from '../../store/claim';
import type { OutcomeAnswer } from '../../store/outcome';
import type { ClaimRecord } from '../../store/record';
import type { ResolveAnswer } from '../../store/resolve';
import { OPERATORS_TOKEN, SOME_TEXT, type Answer, type Entry, type Note, type Record_ } from './model';

/** Model and store in one form, so that they can be compared field by field. */

/** Seconds that a history may really take; the durations in it differ by a minute at least. */
export const TOLERANCE = 20;

/** What the store said to one item. */
export interface SeenAnswer {
	verdict: string;
	reason: string | null;
	payloadChanged: boolean | null;
	record: ClaimRecord | null;
}

export function seenClaim(answer: ClaimAnswer): SeenAnswer {
	const reason = answer.verdict === 'error' ? answer.error.kind : answer.reason;
	return { verdict: answer.verdict, reason, payloadChanged: answer.payloadChanged, record: answer.record };
}

export function seenOutcome(answer: OutcomeAnswer): SeenAnswer {
	if (answer.verdict === 'error') return { verdict: 'error', reason: answer.error.kind, payloadChanged: null, record: null };
	return { verdict: answer.verdict, reason: answer.verdict === 'stale' ? answer.reason : null, payloadChanged: null, record: answer.record };
}

export function seenDecision({ answer, details }: ResolveAnswer): SeenAnswer {
	return { verdict: answer, reason: null, payloadChanged: null, record: details?.record ?? null };
}

/** A row as the driver gives it, past the code under test; instants as seconds from now. */
export interface SeenRow {
	delivery_id: string;
	environment: 'live' | 'test';
	state: string;
	version: number;
	attempt: number;
	owner_token: string;
	claim_reason: string;
	operation: string;
	owner_execution_id: string;
	owner_node_id: string;
	owner_node_name: string;
	resolved_by: string | null;
	lease_seconds: number;
	when_lease_expires: string;
	max_attempts: number;
	retention_days: number;
	fingerprint: string | null;
	has_payload: boolean;
	payload_complete: boolean;
	has_outcome: boolean;
	outcome_reference: string | null;
	outcome_reason: string | null;
	outcome_result: unknown;
	lease_left: number | null;
	retry_left: number | null;
	purge_left: number | null;
	first_seen: number;
	history: SeenEntry[];
}

export interface SeenEntry extends Entry {
	at: string;
	workflow: string;
}

export const SEEN_COLUMNS = `delivery_id, environment, state, version, attempt, owner_token, claim_reason, operation,
	owner_execution_id, owner_node_id, owner_node_name, resolved_by,
	lease_seconds, when_lease_expires, max_attempts, retention_days, fingerprint,
	payload IS NOT NULL AS has_payload, payload_complete,
	outcome_recorded_at IS NOT NULL AS has_outcome, outcome_reference, outcome_reason, outcome_result,
	extract(epoch FROM lease_expires_at - clock_timestamp())::float8 AS lease_left,
	extract(epoch FROM retry_at - clock_timestamp())::float8 AS retry_left,
	extract(epoch FROM purge_after - clock_timestamp())::float8 AS purge_left,
	extract(epoch FROM first_seen_at - clock_timestamp())::float8 AS first_seen,
	history`;

/** The mark by which a note of a stale call's reference is told from a transition. */
export const isNote = (entry: { reason: string | null }) => entry.reason === 'stale_claim';

type View = Record<string, unknown>;

/** How the answer to one item differs from the model's; empty when it does not. */
export function answerDifferences(expected: Answer, seen: SeenAnswer): string[] {
	const ofRecord =
		expected.verdict === 'error' || expected.verdict === 'done'
			? []
			: (expected.record === null) !== (seen.record === null)
				? [`the record shown: ${seen.record === null ? 'none' : 'one'}, not ${expected.record === null ? 'none' : 'one'}`]
				: expected.record && seen.record
					? differences(shownRecord(expected.record), shownBy(seen.record), 'the record shown: ')
					: [];
	return [...differences(verdictView(expected), verdictView(seen)), ...ofRecord];
}

/** Of a new claim the contract leaves open whether its content is compared with nothing (null) or with itself (false). */
function verdictView({ verdict, reason, payloadChanged }: Pick<SeenAnswer, 'verdict' | 'reason' | 'payloadChanged'>): View {
	return { verdict, reason, payloadChanged: verdict === 'new' ? payloadChanged === true : payloadChanged };
}

function shownRecord(record: Record_): View {
	const { state, version, attempt, token, reason, operation, execution, node, resolvedBy, maxAttempts, whenLeaseExpires, fingerprint, payload, outcome } = record;
	return {
		state, version, attempt, token, reason, operation, execution, nodeId: node, node, resolvedBy, maxAttempts, whenLeaseExpires, fingerprint, payload,
		hasLease: record.leaseEnds !== null, hasRetry: record.retryAt !== null, ...outcomeView(outcome),
	};
}

function shownBy(record: ClaimRecord): View {
	const { state, version, attempt, ownerToken, claimReason, operation, owner, resolvedBy, maxAttempts, whenLeaseExpires, fingerprint, payloadComplete, outcome } = record;
	return {
		state, version, attempt, token: ownerToken, reason: claimReason, operation, execution: owner.executionId, nodeId: owner.nodeId, node: owner.nodeName, resolvedBy, maxAttempts, whenLeaseExpires, fingerprint,
		payload: payloadComplete, hasLease: record.leaseExpiresAt !== null, hasRetry: record.retryAt !== null, ...outcomeView(outcome),
	};
}

function outcomeView(outcome: Record_['outcome']): View {
	return { hasOutcome: outcome !== null, outcomeReference: outcome?.reference ?? null, outcomeReason: outcome?.reason ?? null, outcomeResult: outcome?.result ?? null };
}

/** How a row differs from the model's record; empty when it does not. */
export function rowDifferences(expected: Record_ | null, seen: SeenRow | undefined, environment: string, now: number): string[] {
	if (expected === null || seen === undefined) return expected === null && seen === undefined ? [] : [`${environment} row: ${seen ? 'there is one' : 'there is none'}`];
	return differences(rowView(expected, environment, now), seenView(seen, environment), `${environment} row: `);
}

function rowView(record: Record_, environment: string, now: number): View {
	const left = (instant: number | null) => (instant === null ? null : instant - now);
	const { state, version, attempt, token, reason, operation, execution, node, resolvedBy, leaseSeconds, whenLeaseExpires, maxAttempts, retentionDays, fingerprint, payload } = record;
	return {
		state, version, attempt, token, reason, operation, execution, nodeId: node, node, resolvedBy, leaseSeconds, whenLeaseExpires, maxAttempts, retentionDays, fingerprint,
		payload, payloadComplete: payload, ...outcomeView(record.outcome),
		lease: left(record.leaseEnds), firstSeen: left(record.firstSeen), retry: left(record.retryAt), purge: environment === 'live' ? left(record.purgeAt) : 'of a test claim',
		history: record.history, notes: sortedNotes(record.notes),
	};
}

function seenView(row: SeenRow, environment: string): View {
	return {
		state: row.state, version: row.version, attempt: row.attempt, token: row.owner_token, reason: row.claim_reason, operation: row.operation, execution: row.owner_execution_id,
		nodeId: row.owner_node_id, node: row.owner_node_name, resolvedBy: row.resolved_by, leaseSeconds: row.lease_seconds, whenLeaseExpires: row.when_lease_expires, maxAttempts: row.max_attempts,
		retentionDays: row.retention_days, fingerprint: row.fingerprint, payload: row.has_payload, payloadComplete: row.payload_complete, hasOutcome: row.has_outcome,
		outcomeReference: row.outcome_reference, outcomeReason: row.outcome_reason, outcomeResult: row.outcome_result,
		lease: row.lease_left, firstSeen: row.first_seen, retry: row.retry_left, purge: environment === 'live' ? row.purge_left : row.purge_left === null ? null : 'of a test claim',
		history: row.history.filter((entry) => !isNote(entry)).map(({ at: _at, workflow: _workflow, ...entry }) => entry),
		notes: sortedNotes(row.history.filter(isNote).map(({ version, execution, reference }) => ({ version, execution: execution ?? '', reference: reference ?? '' }))),
	};
}

/** Two calls at once may note their references in either order. */
function sortedNotes(notes: readonly Note[]): string[] {
	return notes.map(({ version, execution, reference }) => `${version} ${execution} ${reference}`).sort();
}

const DURATIONS = new Set(['lease', 'retry', 'purge', 'firstSeen']);

function differences(expected: View, seen: View, of = ''): string[] {
	return Object.keys(expected)
		.filter((field) => !isSame(field, expected[field], seen[field]))
		.map((field) => `${of}${field} is ${JSON.stringify(seen[field])}, not ${JSON.stringify(expected[field])}`);
}

function isSame(field: string, expected: unknown, seen: unknown): boolean {
	if (expected === SOME_TEXT) return typeof seen === 'string' && seen !== '';
	if (expected === OPERATORS_TOKEN) return typeof seen === 'string' && seen.startsWith('operator:');
	if (DURATIONS.has(field) && typeof expected === 'number' && typeof seen === 'number') return Math.abs(expected - seen) < TOLERANCE;
	return canonical(expected) === canonical(seen);
}

function canonical(value: unknown): string {
	return JSON.stringify(value, (_key, inner: unknown) =>
		inner !== null && typeof inner === 'object' && !Array.isArray(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
	);
}
