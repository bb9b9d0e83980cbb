import { spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync, rmdirSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** A disk of one megabyte, in memory. */
export interface SmallDisk {
	readonly folder: string;
	remove(): void;
}

/** Mounts one for a user; undefined where this process may not (on Linux, root may). */
export function mountSmallDisk(owner: { uid: number; gid: number }): SmallDisk | undefined {
	const folder = mkdtempSync(path.join(os.tmpdir(), 'idempotent-claim-disk-'));
	if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]).status !== 0) {
		rmdirSync(folder);
		return undefined;
	}
	chownSync(folder, owner.uid, owner.gid);
	return {
		folder,
		remove() {
			const { status, stderr } = spawnSync('umount', [folder], { encoding: 'utf8' });
			if (status !== 0) throw new Error(`${folder} is still mounted: ${stderr}`);
			rmdirSync(folder);
		},
	};
}

/** Whether this process may mount one at all. */
export function canMountDisks(): boolean {
	if (process.getuid?.() !== 0) return false;
	const disk = mountSmallDisk({ uid: 0, gid: 0 });
	disk?.remove();
	return disk !== undefined;
}
