import type { TestNode } from '../support/engine';
import type { Proxy } from '../support/proxy';
import { ALL_OUTPUTS, claimNode, deliveries, guarded, type Workbench } from '../support/workbench';
import { claim, openRig, type Credential } from './support/rig';

/**
 * n8n hands on the input of a node that fails, by its first output: New Claim. Whatever On Error says, and whether or
 * not Operational Error is connected, no fault of the store may let the action run.
 */

let workbench: Workbench;
let proxy: Proxy;
let store: Credential;
let close: () => Promise<void>;
beforeAll(async () => {
	({ workbench, proxy, store, close } = await openRig(300));
	await workbench.database.query(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '53100'; END $$`);
	await workbench.database.query('CREATE TRIGGER failing BEFORE INSERT ON idempotent_claims FOR EACH ROW EXECUTE FUNCTION fail()');
	await workbench.database.query('ALTER TABLE idempotent_claims DISABLE TRIGGER failing');
});
beforeEach(async () => {
	await proxy.forward();
	await workbench.clear();
});
afterAll(async () => await close());

const FAULTS: Record<string, { begin: () => Promise<unknown> | void; end?: () => Promise<unknown>; kind: string }> = {
	'nothing listens': { begin: async () => await proxy.refuse(), kind: 'store_unreachable' },
	'nothing is answered': { begin: () => proxy.goSilentAt('INSERT INTO') && undefined, kind: 'outcome_unknown' },
	'the claim is made, and its answer lost with the server': { begin: () => void proxy.loseAnswerTo('INSERT INTO').happened.then(async () => await proxy.refuse()), kind: 'outcome_unknown' },
	'the disk is full': {
		begin: async () => await workbench.database.query('ALTER TABLE idempotent_claims ENABLE TRIGGER failing'),
		end: async () => await workbench.database.query('ALTER TABLE idempotent_claims DISABLE TRIGGER failing'),
		kind: 'store_busy',
	},
};

const ON_ERROR: Record<string, Partial<TestNode>> = {
	'Stop Workflow': {},
	Continue: { onError: 'continueRegularOutput' },
	'Continue (using error output)': { onError: 'continueErrorOutput' },
	'Continue On Fail, as older workflows have it': { continueOnFail: true },
};

const UNCONNECTED = ALL_OUTPUTS.filter((line) => !line.startsWith('Claim[2]'));

describe.each(Object.entries(FAULTS))('%s', (_fault, { begin, end, kind }) => {
	describe.each(Object.entries(ON_ERROR))('On Error: %s', (_name, settings) => {
		const cases: Array<[string, string[]]> = [
			['connected', ALL_OUTPUTS],
			['not connected', UNCONNECTED],
		];
		test.each(cases)('Operational Error %s: neither New Claim nor Known Duplicate', async (_connected, lines) => {
			expect(await claim(workbench, store, ['warm-up'])).toEqual(['new']);
			await begin();
			const run = await workbench.run(guarded(claimNode({}, settings), lines), { items: deliveries('a', 'b', 'c'), mode: 'webhook', credentials: { store } });
			await end?.();

			expect([run.ran('Action'), run.ran('Duplicate')]).toEqual([false, false]);
			// With nobody to see it, the sender must hear of it: the execution fails, unless it was told to go on.
			const stops = lines === UNCONNECTED && !settings.onError && !settings.continueOnFail;
			expect(run.status).toBe(stops ? 'error' : 'success');
			if (stops) expect(run.error?.message).toMatch(/\w/);
			else expect(run.allOutputOf('Claim', 2).map((json) => (json.claim as { error: { kind: string } }).error.kind)).toEqual([kind, kind, kind]);
		});
	});
});
