import { claimNode, claimsOf, deliveries, guarded, KNOWN_DUPLICATE, NEW_CLAIM, OPERATIONAL_ERROR, Workbench } from '../../support/workbench';
import { freePort } from '../../support/freePort';
import type { RunOptions, TestNode } from '../../support/engine';

/**
 * n8n's engine sends by output 0 whatever is unusual: the input of a node that threw, an empty item of
 * "Always Output Data". Output 0 is New Claim, so each way to fail is run under all settings.
 */

let workbench: Workbench;
let closedPort: number;
beforeAll(async () => {
	workbench = await Workbench.open();
	closedPort = await freePort();
	await workbench.database.query('CREATE TABLE without_key (delivery_id text)');
	await workbench.database.query('CREATE ROLE onlooker LOGIN PASSWORD $$onlooker$$');
});
afterEach(async () => await workbench.clear());
afterAll(async () => {
	await workbench.database.query('DROP ROLE onlooker');
	await workbench.close();
});

interface Failure {
	kind: string;
	claim?: () => TestNode;
	credentials?: () => RunOptions['credentials'];
	id?: unknown;
}

const brokenExpression = "={{ $('No such node').item.json.id }}";
const options = (changes: object) => () => claimNode({ options: changes as never });
const store = (changes: () => object) => () => ({ store: workbench.credential(changes() as never) });

const failures: Record<string, Failure> = {
	'the expression of Delivery ID fails': { kind: 'invalid_setting', claim: () => claimNode({ deliveryId: brokenExpression }) },
	'the expression of Source fails': { kind: 'invalid_setting', claim: () => claimNode({ source: brokenExpression }) },
	'the expression of Provider fails': { kind: 'invalid_setting', claim: () => claimNode({ provider: brokenExpression }) },
	'the expression of Operation fails': { kind: 'invalid_setting', claim: () => claimNode({ operation: brokenExpression }) },
	'an expression in the Options fails': { kind: 'invalid_setting', claim: options({ account: brokenExpression }) },
	'the Operation is unknown': { kind: 'invalid_setting', claim: () => claimNode({ operation: 'steal' }) },
	'the Provider is unknown': { kind: 'invalid_setting', claim: () => claimNode({ provider: 'nobody' }) },
	'the lease is no length of time': { kind: 'invalid_setting', claim: options({ leaseSeconds: 0 }) },
	'the pattern is no regular expression': { kind: 'invalid_setting', claim: options({ deliveryIdPattern: '(' }) },
	'the Result Field is one that n8n reads as an error': { kind: 'invalid_setting', claim: options({ resultField: 'error' }) },
	'the ID changes at every execution': { kind: 'invalid_setting', claim: () => claimNode({ deliveryId: '={{ $execution.id }}' }) },
	'the ID is missing': { kind: 'missing_delivery_id', id: null },
	'the ID is malformed': { kind: 'invalid_delivery_id', id: ' d1' },
	'no credential is chosen': { kind: 'invalid_setting', claim: () => claimNode({}, { credential: undefined }) },
	'the credential is gone': { kind: 'invalid_setting', claim: () => claimNode({}, { credential: 'deleted' }) },
	'the credential cannot be decrypted': { kind: 'invalid_setting', credentials: () => ({ store: 'encrypted with another key' }) },
	'the database is unreachable': { kind: 'store_unreachable', credentials: store(() => ({ port: closedPort })) },
	'the host does not exist': { kind: 'store_unreachable', credentials: store(() => ({ host: 'no-such-host.invalid' })) },
	'the password is wrong': { kind: 'store_denied', credentials: store(() => ({ password: 'wrong' })) },
	'the role may do nothing': { kind: 'store_denied', credentials: store(() => ({ user: 'onlooker', password: 'onlooker' })) },
	'the table name is too long': { kind: 'store_misconfigured', credentials: store(() => ({ table: 't'.repeat(64) })) },
	'the table is another one': { kind: 'store_misconfigured', credentials: store(() => ({ table: 'without_key' })) },
	'the table is missing and must not be made': { kind: 'store_misconfigured', credentials: store(() => ({ table: 'not_there', createTable: false })) },
};

const everySetting: Array<Partial<TestNode>> = [];
for (const onError of [undefined, 'continueRegularOutput', 'continueErrorOutput'] as const) {
	for (const alwaysOutputData of [false, true]) {
		for (const executeOnce of [false, true]) {
			for (const retryOnFail of [false, true]) everySetting.push({ onError, alwaysOutputData, executeOnce, retryOnFail, maxTries: 2, waitBetweenTries: 1 });
		}
	}
}

describe.each(Object.entries(failures))('%s', (_name, { kind, claim = claimNode, credentials, id }) => {
	test.each([1, 3])('%i item(s): the action never runs, and nothing is claimed', async (count) => {
		for (const settings of everySetting) {
			const items = deliveries(...Array.from({ length: count }, (_, index) => (id === undefined ? `d${index}` : id)));
			const run = await workbench.run(guarded({ ...claim(), ...settings }), { items, credentials: credentials?.() });

			const seen = {
				settings,
				actions: run.allOutputOf('Action'),
				status: run.status,
				kinds: claimsOf(run, 'Claim', OPERATIONAL_ERROR).map(({ error }) => error?.kind),
			};
			const passed = settings.executeOnce ? 1 : count;
			expect(seen).toEqual({
				settings,
				actions: [],
				status: settings.alwaysOutputData ? 'error' : 'success',
				kinds: settings.alwaysOutputData ? [] : Array(passed).fill(kind),
			});
			expect(run.ran('Duplicate')).toBe(false);
		}
		expect(await workbench.rows()).toEqual([]);
	});
});

test('with nothing wrong, New Claim carries exactly what was claimed, under every setting', async () => {
	for (const settings of everySetting) {
		const run = await workbench.run(guarded(claimNode({}, settings)), { items: deliveries('d1', 'd2', 'd3') });
		const rows = await workbench.rows();
		const expected = settings.alwaysOutputData ? [] : settings.executeOnce ? ['d1'] : ['d1', 'd2', 'd3'];
		expect({ settings, actions: run.allOutputOf('Action').map(({ id }) => id), claimed: rows.map((row) => row.delivery_id) }).toEqual({ settings, actions: expected, claimed: expected });
		expect(run.status).toBe(settings.alwaysOutputData ? 'error' : 'success');
		await workbench.clear();
	}
});

test('a duplicate never reaches New Claim, under every setting', async () => {
	for (const settings of everySetting.filter(({ alwaysOutputData }) => !alwaysOutputData)) {
		await workbench.run(guarded(), { items: deliveries('d1') });
		const run = await workbench.run(guarded(claimNode({}, settings)), { items: deliveries('d1') });
		expect({ settings, action: run.ran('Action'), duplicates: claimsOf(run, 'Claim', KNOWN_DUPLICATE).length }).toEqual({ settings, action: false, duplicates: 1 });
	}
});

test('Always Output Data is refused in words that say what to switch off', async () => {
	const run = await workbench.run(guarded(claimNode({}, { alwaysOutputData: true, onError: 'continueRegularOutput' })), { items: deliveries('d1'), mode: 'manual' });
	expect(run.error?.message).toContain('Always Output Data');
	expect(run.ran('Action')).toBe(false);
});

test('one bad item of a batch does not take its neighbours along', async () => {
	const run = await workbench.run(guarded(), { items: deliveries('d1', undefined, 'd3') });
	expect(run.outputOf('Claim', NEW_CLAIM).map(({ id }) => id)).toEqual(['d1', 'd3']);
	expect(claimsOf(run, 'Claim', OPERATIONAL_ERROR)).toMatchObject([{ error: { kind: 'missing_delivery_id' } }]);
	expect((await workbench.rows()).map((row) => row.delivery_id)).toEqual(['d1', 'd3']);
});
