import { stat } from 'node:fs/promises';
import { startOwnPostgres } from '../support/ownPostgres';
import { Workbench } from '../support/workbench';
import { canMountDisks, mountSmallDisk } from './support/smallDisk';
import { claim, claimInPeace, complete } from './support/rig';

/** What the nodes say when a disk is really full. Where nothing may be mounted, a trigger says so in outages.test.ts. */
(canMountDisks() ? test : test.skip)('the disk fills up under the claim table (where this process may mount one): new claims up to there, then busy, and new again when there is room', async () => {
	const server = await startOwnPostgres();
	const workbench = await Workbench.open({}, server);
	const [{ data_directory: dataFolder }] = await workbench.database.query<{ data_directory: string }>('SHOW data_directory');
	const disk = mountSmallDisk(await stat(dataFolder));
	if (!disk) throw new Error('The disk could not be mounted');
	try {
		const handle = await claimInPeace(workbench, 'acted');
		await workbench.database.query(`CREATE TABLESPACE small LOCATION '${disk.folder}'`);
		await workbench.database.query('CREATE TABLE ballast TABLESPACE small AS SELECT n, repeat(md5(n::text), 20) FROM generate_series(1, 500) AS n');
		await workbench.database.query('ALTER TABLE idempotent_claims SET TABLESPACE small');
		const store = workbench.credential();

		let said: string[] = [];
		let full: string[] = [];
		for (let batch = 1; !said.some((each) => each.startsWith('error')); batch++) {
			full = ['acted', ...Array.from({ length: 100 }, (_, index) => `${batch}-${index}`)];
			said = await claim(workbench, store, full);
			// One statement for the batch: all of it, or nothing.
			if (said[0] === 'duplicate in_progress') expect(said.slice(1)).toEqual(Array(100).fill('new'));
		}
		expect(said).toEqual(full.map(() => 'error store_busy 53100 503'));
		expect(await workbench.database.query('SELECT FROM idempotent_claims WHERE delivery_id = ANY ($1)', [full.slice(1)])).toEqual([]);

		await workbench.database.query('DROP TABLE ballast');
		expect(await claim(workbench, store, full)).toEqual(['duplicate in_progress', ...Array<string>(100).fill('new')]);
		expect(await complete(workbench, store, handle, 'lead-1')).toBe('recorded');
	} finally {
		await server.remove();
		disk.remove();
	}
});
