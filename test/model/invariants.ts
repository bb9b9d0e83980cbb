import { isNote, type SeenAnswer, type SeenRow } from './comparison';

/** What must hold whatever the model says: looked at in rows and answers alone. */

/** One item of a step, and what it was told. */
export interface Verdict {
	kind: 'claim' | 'settle' | 'putBack' | 'decide';
	identity: string;
	token: string;
	execution: string;
	seen: SeenAnswer;
}

export interface StepSeen {
	/** By identity. */
	before: ReadonlyMap<string, SeenRow>;
	after: ReadonlyMap<string, SeenRow>;
	verdicts: readonly Verdict[];
	/** Two calls at once: then a row may have moved on after an answer. */
	concurrent: boolean;
	/** Identities whose finished claim this step may open again: given back by the run that had just made it, or a test run that begins anew. */
	mayReopen: ReadonlySet<string>;
	/** Rows may go in this step. */
	purges: boolean;
}

export function brokenInvariants({ before, after, verdicts, concurrent, mayReopen, purges }: StepSeen): string[] {
	const broken: string[] = [];
	for (const [identity, row] of before) {
		const now = after.get(identity);
		if (now === undefined) {
			if (!purges) broken.push(`${identity}: the row is gone without a purge`);
			continue;
		}
		if (now.version < row.version) broken.push(`${identity}: the version fell from ${row.version} to ${now.version}`);
		if (now.owner_token !== row.owner_token && now.version === row.version) broken.push(`${identity}: another owner under the same version ${row.version}: two current owners`);
		if (row.state === 'completed' && now.state !== 'completed' && !mayReopen.has(identity)) broken.push(`${identity}: completed became ${now.state}`);
		if (JSON.stringify(now.history.slice(0, row.history.length)) !== JSON.stringify(row.history)) broken.push(`${identity}: the history did not only grow`);
	}
	for (const [identity, { version, history }] of after) {
		const versions = history.filter((entry) => !isNote(entry)).map((entry) => entry.version);
		if (versions.some((each, index) => index > 0 && each < versions[index - 1])) broken.push(`${identity}: versions fall in the history: ${versions.join(', ')}`);
		if (versions.at(-1) !== version) broken.push(`${identity}: the last transition has version ${versions.at(-1)}, the row ${version}`);
	}
	verdicts.forEach(({ kind, identity, token, execution, seen }, place) => {
		const row = after.get(identity);
		if (kind === 'claim' && seen.verdict === 'new') {
			if (seen.record?.ownerToken !== token) broken.push(`${identity}: New Claim, and the record that was shown has another token`);
			// A later item of the call may have taken it: test claims that are always new, where another execution has become the owner on record.
			const isLast = !verdicts.slice(place + 1).some((later) => later.identity === identity && later.seen.verdict === 'new');
			if (!concurrent && isLast && row?.owner_token !== token) broken.push(`${identity}: New Claim without a row that carries its token`);
			if (!row?.history.some((entry) => entry.execution === execution && entry.version === seen.record?.version)) broken.push(`${identity}: New Claim without a trace in the history`);
		}
		if (kind === 'settle' && seen.verdict === 'recorded') {
			const owner = before.get(identity)?.owner_token;
			if (!concurrent && owner !== token) broken.push(`${identity}: a replaced owner recorded`);
			const { record } = seen;
			const outcome = record?.outcome;
			if (record && outcome && !row?.history.some((entry) => entry.version === record.version && entry.state === record.state && entry.reference === outcome.reference))
				broken.push(`${identity}: an accepted outcome is not in the history`);
		}
	});
	return broken;
}
