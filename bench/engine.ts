import path from 'node:path';
import { ClaimStoreApi } from '../credentials/ClaimStoreApi.credentials';
import type * as CompleteClaimModule from '../nodes/CompleteClaim/CompleteClaim.node';
import type * as IdempotentClaimModule from '../nodes/IdempotentClaim/IdempotentClaim.node';
import { Engine } from '../test/support/engine';
import { testNodeTypes } from '../test/support/nodeTypes';
import { COMPLETE_CLAIM, IDEMPOTENT_CLAIM } from '../test/support/workbench';

/** By their whole names: without them, tsx takes the codex files beside them, `.node.json`. */
const NODE_FILES = { idempotentClaim: fileOf('IdempotentClaim'), completeClaim: fileOf('CompleteClaim') };

function fileOf(name: string): string {
	return path.join(__dirname, '../nodes', name, `${name}.node.ts`);
}

/** n8n's own engine with the nodes that are measured, as the tests use it. */
export async function openEngine(): Promise<Engine> {
	const { IdempotentClaim } = (await import(NODE_FILES.idempotentClaim)) as typeof IdempotentClaimModule;
	const { CompleteClaim } = (await import(NODE_FILES.completeClaim)) as typeof CompleteClaimModule;
	return new Engine({ ...testNodeTypes, [IDEMPOTENT_CLAIM]: new IdempotentClaim(), [COMPLETE_CLAIM]: new CompleteClaim() }, [new ClaimStoreApi()]);
}
