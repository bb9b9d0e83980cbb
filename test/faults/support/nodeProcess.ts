import path from 'node:path';
import type { ICredentialDataDecryptedObject } from 'n8n-workflow';
import { ClaimStoreApi } from '../../../credentials/ClaimStoreApi.credentials';
import type * as NodeModule from '../../../nodes/IdempotentClaim/IdempotentClaim.node';
import { Engine } from '../../support/engine';
import { testNodeTypes } from '../../support/nodeTypes';
import { claimNode, claimsOf, deliveries, guarded, IDEMPOTENT_CLAIM } from '../../support/workbench';

/** A process of its own with Idempotent Claim on n8n's engine: it claims what its parent sends, and reports what each item said. */

export interface ClaimOrder {
	credential: ICredentialDataDecryptedObject;
	/** Each list is an execution of its own; all run at once. */
	executions: string[][];
}

/** By its whole name: without it, tsx takes the codex file beside it, `.node.json`. */
const NODE_FILE = path.join(__dirname, '../../../nodes/IdempotentClaim/IdempotentClaim.node.ts');

async function serve(): Promise<void> {
	const { IdempotentClaim } = (await import(NODE_FILE)) as typeof NodeModule;
	const engine = new Engine({ ...testNodeTypes, [IDEMPOTENT_CLAIM]: new IdempotentClaim() }, [new ClaimStoreApi()]);
	const claim = async ({ credential, executions }: ClaimOrder) =>
		await Promise.all(
			executions.map(async (ids) => {
				const run = await engine.run(guarded(claimNode()), { items: deliveries(...ids), credentials: { store: credential } });
				return [0, 1, 2].flatMap((output) => claimsOf(run, 'Claim', output).map(({ status, error }) => error?.kind ?? status));
			}),
		);
	process.on('message', (order) => void claim(order as ClaimOrder).then((said) => process.send?.(said)));
	process.send?.('ready');
}

void serve();
