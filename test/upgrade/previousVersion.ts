import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { INodeType } from 'n8n-workflow';
import { withPollTimes } from '../support/publication';
import { CLAIM_RECOVERY_TRIGGER, COMPLETE_CLAIM, IDEMPOTENT_CLAIM } from '../support/workbench';

const FOLDER = path.join(__dirname, 'versions');
const ROOT = path.join(__dirname, '../..');

/** The names of the archives of earlier versions, as npm packed them. */
export const ARCHIVES = readdirSync(FOLDER).filter((name) => name.endsWith('.tgz'));

/** The nodes of an earlier version, unpacked in a folder of its own. */
export class PreviousVersion {
	private constructor(
		private readonly folder: string,
		/** By the type that they have in workflows. */
		readonly nodeTypes: Record<string, INodeType>,
	) {}

	static async unpack(archive: string): Promise<PreviousVersion> {
		const folder = await mkdtemp(path.join(os.tmpdir(), 'idempotent-claim-previous-'));
		const target = path.join(folder, 'package');
		await mkdir(target);
		await promisify(execFile)('tar', ['-xzf', path.join(FOLDER, archive), '-C', target, '--strip-components=1']);
		// Its dependencies are those of this repository: what it needs of them has not changed.
		await symlink(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
		const nodeOf = (name: string) => {
			// eslint-disable-next-line @typescript-eslint/no-require-imports -- the path is known only here
			const module = require(path.join(target, 'dist', 'nodes', name, `${name}.node.js`)) as Record<string, new () => INodeType>;
			return new module[name]();
		};
		return new PreviousVersion(folder, {
			[IDEMPOTENT_CLAIM]: nodeOf('IdempotentClaim'),
			[COMPLETE_CLAIM]: nodeOf('CompleteClaim'),
			[CLAIM_RECOVERY_TRIGGER]: withPollTimes(nodeOf('ClaimRecoveryTrigger')),
		});
	}

	async remove(): Promise<void> {
		await rm(this.folder, { recursive: true, force: true });
	}
}
