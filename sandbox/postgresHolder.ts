/** Child of `postgresProcess.ts`: holds the server for as long as its parent is there. */
import { startPostgres, type PostgresOptions } from './postgres';
import type { HolderReport } from './postgresProcess';

async function hold(): Promise<void> {
	const tell = (report: HolderReport) => process.send?.(report);
	const parentGone = new Promise((resolve) => process.once('disconnect', resolve));
	try {
		const { stop, ...address } = await startPostgres(JSON.parse(process.argv[2]) as PostgresOptions);
		tell(address);
		await parentGone;
		await stop();
	} catch (error) {
		tell({ failure: (error as Error).message });
		process.disconnect();
	}
}

void hold();
