import path from 'node:path';
import type { ICredentialDataDecryptedObject } from 'n8n-workflow';
import { ClaimStoreApi } from '../../../../credentials/ClaimStoreApi.credentials';
import type * as NodeModule from '../../../../nodes/ClaimRecoveryTrigger/ClaimRecoveryTrigger.node';
import { Engine } from '../../../support/engine';
import { testNodeTypes } from '../../../support/nodeTypes';
import { publish, withPollTimes, type PublishOptions } from '../../../support/publication';
import { CLAIM_RECOVERY_TRIGGER } from '../../../support/workbench';
import { recovering, triggerNode } from './recovering';

/**
 * One n8n process with some published workflows that recover the same claims. Its parent sends an order; it answers
 * `ready`, waits for `go`, polls with all of them until none finds anything, and reports what n8n was told to start.
 */

export interface PollerOrder {
	credential: ICredentialDataDecryptedObject;
	workflows: number;
	limit: number;
}

export interface PollerReport {
	/** `delivery ID, version` of each execution that was started. */
	started: string[];
	failures: string[];
}

/** By its whole name: without it, tsx takes the codex file beside it, `.node.json`. */
const NODE_FILE = path.join(__dirname, '../../../../nodes/ClaimRecoveryTrigger/ClaimRecoveryTrigger.node.ts');

const message = async () => await new Promise<unknown>((resolve) => process.once('message', resolve));

async function poll(): Promise<void> {
	const { credential, workflows, limit } = (await message()) as PollerOrder;
	const { ClaimRecoveryTrigger } = (await import(NODE_FILE)) as typeof NodeModule;
	const engine = new Engine({ ...testNodeTypes, [CLAIM_RECOVERY_TRIGGER]: withPollTimes(new ClaimRecoveryTrigger()) }, [new ClaimStoreApi()]);
	process.send?.('ready');
	await message();

	const report: PollerReport = { started: [], failures: [] };
	await Promise.all(
		Array.from({ length: workflows }, async (_, index) => {
			const workflow = recovering(triggerNode({ limit }), undefined, `recovery-${process.pid}-${index}`);
			const emit: PublishOptions['emit'] = (outputs) => {
				for (const { json } of outputs.flat()) {
					const { deliveryId, version } = json.claim as { deliveryId: string; version: number };
					report.started.push(`${deliveryId}, ${version}`);
				}
			};
			const publication = await publish(engine, workflow, { credentials: { store: credential }, emit });
			for (let before = -1; before < report.started.length; ) {
				before = report.started.length;
				await publication.poll();
			}
			report.failures.push(...publication.failures.map(({ message: text }) => text));
		}),
	);
	process.send?.(report, () => process.exit(0));
}

void poll();
