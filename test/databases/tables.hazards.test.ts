import { LEASE_OVER } from '../support/timePassed';
import { Workbench } from '../support/workbench';
import { asIs, Site } from './support/site';

/**
 * Tables whose key holds, and which somebody gave other things: the credential test names each before the first
 * claim, and where one bites, its items are refused by name. Never a New Claim without its row.
 */

let workbench: Workbench;
const PASSWORD = 'app-only';
let role: string;
beforeAll(async () => {
	workbench = await Workbench.open();
	role = `app_${workbench.database.database}`;
	await workbench.database.query(`CREATE ROLE ${role} LOGIN PASSWORD '${PASSWORD}'`);
});
afterAll(async () => {
	await workbench.database.query(`DROP OWNED BY ${role}`);
	await workbench.database.query(`DROP ROLE ${role}`);
	await workbench.close();
});

const made = async (...changes: string[]) => await Site.made(workbench, changes);

/** The credential test names it, and says what to do. */
async function warns(site: Site, ...texts: string[]): Promise<void> {
	const { status, message } = await site.test();
	expect(status).toBe('Error');
	for (const text of texts) expect(message).toContain(text);
}

const NEW = 'new first_delivery, recorded';

describe('another unique index: what it refuses is an error, everything else is claimed', () => {
	test.each([
		['an index', 'CREATE UNIQUE INDEX other ON $TABLE (fingerprint)'],
		['a constraint', 'ALTER TABLE $TABLE ADD CONSTRAINT other UNIQUE (fingerprint)'],
		['a partial index', `CREATE UNIQUE INDEX other ON $TABLE (fingerprint) WHERE environment = 'live'`],
		['an exclusion constraint', 'ALTER TABLE $TABLE ADD CONSTRAINT other EXCLUDE (fingerprint WITH =)'],
	])('%s', async (_title, change) => {
		const site = await made(change.replace('other', `other_${++others}`));
		await warns(site, 'another unique index or constraint, which would refuse claims: other_', 'Drop it.');
		// The same content under two IDs.
		const { said } = await site.deliver(['a', 'b'], { options: { fingerprint: 'same' } });
		expect([...said].sort()).toEqual(['error store_misconfigured', NEW].sort());
		expect(await site.count()).toBe(1);
		expect((await site.deliver(['c'])).said).toEqual([NEW]);
	});

	test('one that folds case', async () => {
		const site = await made('CREATE UNIQUE INDEX folding ON $TABLE (lower(delivery_id))');
		await warns(site, 'another unique index or constraint, which would refuse claims: folding');
		const { said, errors } = await site.deliver(['Evt', 'evt']);
		expect([...said].sort()).toEqual(['error store_misconfigured', NEW].sort());
		expect(errors).toMatchObject([{ sqlState: '23505', hint: expect.stringMatching(/unique indexes/) as string }]);
		expect(await site.count()).toBe(1);
	});

	// Not valid, and kept up: enough to refuse, not enough to be the key.
	test('one whose making was broken off at its end', async () => {
		const site = await made();
		await site.insert('first');
		await site.breakOff('CREATE UNIQUE INDEX CONCURRENTLY broken_off ON $TABLE (source)');
		await warns(site, 'another unique index or constraint, which would refuse claims: broken_off');
		expect((await site.deliver(['a'])).said).toEqual(['error store_misconfigured']);
		expect(await site.count()).toBe(1);
	});

	test('one whose making failed at its beginning is not kept up, and refuses nothing', async () => {
		const site = await made();
		await site.insert('first');
		await site.insert('second');
		await expect(site.query('CREATE UNIQUE INDEX CONCURRENTLY ON $TABLE (source)')).rejects.toMatchObject({ code: '23505' });
		expect((await site.test()).status).toBe('OK');
		await site.works();
	});
});
let others = 0;

describe('constraints', () => {
	test.each([
		['a CHECK', 'ALTER TABLE $TABLE ADD CONSTRAINT only_known CHECK (event_type IS NULL)'],
		['a CHECK over several columns', 'ALTER TABLE $TABLE ADD CONSTRAINT only_known CHECK (event_type IS NULL OR source = \'other\')'],
		['a foreign key', 'CREATE TABLE IF NOT EXISTS event_types (name text PRIMARY KEY); ALTER TABLE $TABLE ADD CONSTRAINT only_known FOREIGN KEY (event_type) REFERENCES event_types'],
	])('%s: only the items that it does not allow are refused', async (_title, change) => {
		const site = await made(change);
		await warns(site, 'a constraint of its own, which would refuse the claims that it does not allow: only_known');
		const { said, errors } = await site.deliver(['a', 'b'], { options: { eventType: `={{ $json.id === 'a' ? 'unknown' : '' }}` } });
		expect(said).toEqual(['error store_misconfigured', NEW]);
		expect(errors).toMatchObject([{ hint: 'Remove constraints that the package did not create.' }]);
		expect(await site.count()).toBe(1);
	});

	test.each([
		['a column of the package\'s', 'ALTER TABLE $TABLE ALTER COLUMN retry_at SET NOT NULL', 'retry_at'],
		['a column of somebody else\'s', 'ALTER TABLE $TABLE ADD COLUMN tenant text NOT NULL', 'tenant'],
	])('NOT NULL on %s that a claim leaves empty', async (_title, change, column) => {
		const site = await made(change);
		await warns(site, `demands a value in columns that a claim may leave empty: ${column}`);
		const { said, errors } = await site.deliver(['a']);
		expect(said).toEqual(['error store_misconfigured']);
		expect(errors).toMatchObject([{ sqlState: '23502' }]);
		expect(await site.count()).toBe(0);
	});
});

describe('triggers before a row', () => {
	/** A table with a trigger function of this body. */
	async function withTrigger(events: string, body: string, edit = asIs): Promise<Site> {
		const site = await Site.made(workbench, [], edit);
		await site.query(`CREATE FUNCTION ${site.table}_meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$`);
		await site.query(`CREATE TRIGGER meddle BEFORE ${events} ON $TABLE FOR EACH ROW EXECUTE FUNCTION ${site.table}_meddle()`);
		await warns(site, 'triggers that run before each row and may drop, change or refuse claims: meddle');
		return site;
	}

	test('swallows inserts: neither new nor duplicate', async () => {
		const site = await withTrigger('INSERT', 'RETURN NULL;');
		const { said, errors } = await site.deliver(['a', 'b']);
		expect(said).toEqual(['error store_misconfigured', 'error store_misconfigured']);
		expect(errors[0]).toMatchObject({ message: 'The claim was neither inserted nor found', hint: expect.stringContaining('trigger') as string });
		expect(await site.count()).toBe(0);
	});

	test('swallows one insert: its neighbours are claimed', async () => {
		const site = await withTrigger('INSERT', `IF NEW.delivery_id = 'b' THEN RETURN NULL; END IF; RETURN NEW;`);
		expect((await site.deliver(['a', 'b', 'c'])).said).toEqual([NEW, 'error store_misconfigured', NEW]);
	});

	// The row carries our token, and is not our delivery: another copy would not find it.
	test.each([
		['cuts the ID', 'NEW.delivery_id := left(NEW.delivery_id, 3);'],
		['folds the ID', 'NEW.delivery_id := lower(NEW.delivery_id);'],
		['changes another part of the identity', `NEW.account := 'main';`],
		['changes the environment', `NEW.environment := 'test';`],
	])('%s: never a New Claim', async (_title, body) => {
		const site = await withTrigger('INSERT', `${body} RETURN NEW;`);
		for (let delivery = 1; delivery <= 2; delivery++) {
			const { said, errors } = await site.deliver(['Evt-1']);
			expect(said).toEqual(['error store_misconfigured']);
			expect(errors[0].hint).toContain('trigger');
		}
	});

	// Its row is found afterwards and shows another's token: a duplicate of nothing, and the delivery would be lost.
	test('changes the owner token: never a duplicate of itself', async () => {
		const site = await withTrigger('INSERT', `NEW.owner_token := 'changed'; RETURN NEW;`);
		expect((await site.deliver(['a', 'b'])).said).toEqual(['error store_misconfigured', 'error store_misconfigured']);
	});

	test('raises an error of its own', async () => {
		const site = await withTrigger('INSERT', `RAISE EXCEPTION 'not this one';`);
		const { said, errors } = await site.deliver(['a']);
		expect(said).toEqual(['error unexpected']);
		expect(errors).toMatchObject([{ sqlState: 'P0001', hint: expect.stringMatching(/\w/) as string }]);
	});

	test('raises a unique violation itself: an error, not a duplicate', async () => {
		const site = await withTrigger('INSERT', `RAISE unique_violation;`);
		const { said, errors } = await site.deliver(['a']);
		expect(said).toEqual(['error store_misconfigured']);
		expect(errors).toMatchObject([{ sqlState: '23505' }]);
		expect(await site.count()).toBe(0);
	});

	test('swallows updates: the outcome is not recorded, and nobody says that it was', async () => {
		const site = await withTrigger('UPDATE', 'RETURN NULL;');
		const { said, outcomeErrors } = await site.deliver(['a']);
		expect(said).toEqual(['new first_delivery, error store_busy']);
		expect(outcomeErrors).toMatchObject([{ hint: expect.stringContaining('trigger') as string }]);
		expect(await site.query('SELECT state FROM $TABLE')).toEqual([{ state: 'processing' }]);
	});

	test('undoes updates: the outcome is not recorded, and nobody says that it was', async () => {
		const site = await withTrigger('UPDATE', 'RETURN OLD;');
		const { said, outcomeErrors } = await site.deliver(['a']);
		expect(said).toEqual(['new first_delivery, error store_misconfigured']);
		expect(outcomeErrors).toMatchObject([{ hint: expect.stringContaining('trigger') as string }]);
		expect(await site.query('SELECT state FROM $TABLE')).toEqual([{ state: 'processing' }]);
	});

	test('undoes updates: no claim is taken over', async () => {
		const site = await withTrigger('UPDATE', 'RETURN OLD;');
		await site.deliver(['a'], { options: { whenLeaseExpires: 'takeOver' } });
		await site.query('ALTER TABLE $TABLE DISABLE TRIGGER meddle');
		await site.query(`UPDATE $TABLE SET ${LEASE_OVER}`);
		await site.query('ALTER TABLE $TABLE ENABLE TRIGGER meddle');
		const { said, errors } = await site.deliver(['a'], { options: { whenLeaseExpires: 'takeOver' } });
		expect(said).toEqual(['error store_misconfigured']);
		expect(errors[0].hint).toContain('trigger');
		await site.query('ALTER TABLE $TABLE DISABLE TRIGGER meddle');
		expect((await site.deliver(['a'])).said).toEqual(['new lease_expired, recorded']);
	});
});

describe('row-level security', () => {
	async function secured(...policies: string[]): Promise<{ site: Site; owner: Site }> {
		const owner = await made(`GRANT SELECT, INSERT, UPDATE ON $TABLE TO ${role}`, 'ALTER TABLE $TABLE ENABLE ROW LEVEL SECURITY', ...policies);
		return { owner, site: owner.as(role, PASSWORD) };
	}
	const APPLIES = 'Row-level security of the table';

	test('without a policy: every claim is refused', async () => {
		const { site } = await secured();
		await warns(site, APPLIES, 'FOR ALL USING (true)');
		const { said, errors } = await site.deliver(['a']);
		expect(said).toEqual(['error store_denied']);
		expect(errors).toMatchObject([{ sqlState: '42501', hint: expect.stringContaining('row-level security') as string }]);
		expect(await site.count()).toBe(0);
	});

	test("hides others' rows: a copy of one is an error, neither new nor duplicate", async () => {
		const { site, owner } = await secured(`CREATE POLICY own ON $TABLE USING (owner_node_name <> 'N')`);
		await owner.insert('hidden');
		await warns(site, APPLIES);
		const { said } = await site.deliver(['hidden', 'mine', 'mine']);
		expect(said[0]).toMatch(/^error store_(denied|misconfigured)$/);
		expect(said.slice(1)).toEqual([NEW, 'duplicate in_progress']);
		expect(await site.query(`SELECT owner_node_name FROM $TABLE WHERE delivery_id = 'hidden'`)).toEqual([{ owner_node_name: 'N' }]);
	});

	test('refuses some rows: only those items', async () => {
		const { site } = await secured(`CREATE POLICY partly ON $TABLE USING (true) WITH CHECK (delivery_id <> 'b')`);
		await warns(site, APPLIES);
		expect((await site.deliver(['b'])).said).toEqual(['error store_denied']);
		expect((await site.deliver(['a'])).said).toEqual([NEW]);
	});

	test('a restrictive policy beside an open one', async () => {
		const { site } = await secured('CREATE POLICY everything ON $TABLE USING (true)', `CREATE POLICY less ON $TABLE AS RESTRICTIVE USING (delivery_id <> 'b')`);
		await warns(site, APPLIES);
		expect((await site.deliver(['b'])).said).toEqual(['error store_denied']);
	});

	test.each([
		['a policy for everybody', 'CREATE POLICY everything ON $TABLE USING (true)'],
		['a policy for this user', `CREATE POLICY everything ON $TABLE TO ROLE_OF_N8N USING (true) WITH CHECK (true)`],
		['no row-level security for this user', 'ALTER TABLE $TABLE DISABLE ROW LEVEL SECURITY'],
	])('%s: works', async (_title, change) => {
		const { site } = await secured(change.replace('ROLE_OF_N8N', role));
		expect((await site.test()).status).toBe('OK');
		await site.works();
	});

	test('does not concern the owner of the table', async () => {
		const { owner } = await secured();
		expect((await owner.test()).status).toBe('OK');
		await owner.works();
	});
});

describe('a crash of the server would empty it', () => {
	test('UNLOGGED: claims work, the credential test warns', async () => {
		const site = await made('ALTER TABLE $TABLE SET UNLOGGED');
		await warns(site, `UNLOGGED, which a crash of the server empties: ${site.table}`, 'SET LOGGED');
		await site.works();
	});

	test('an UNLOGGED partition', async () => {
		const site = await Site.made(
			workbench,
			['CREATE TABLE part_logged PARTITION OF $TABLE FOR VALUES WITH (MODULUS 2, REMAINDER 0)', 'CREATE UNLOGGED TABLE part_unlogged PARTITION OF $TABLE FOR VALUES WITH (MODULUS 2, REMAINDER 1)'],
			(sql) => sql.replace(/\n\);/, '\n) PARTITION BY HASH (delivery_id);'),
		);
		await warns(site, 'UNLOGGED, which a crash of the server empties: part_unlogged');
		await site.works();
	});

	test('commits that are not durable for this user', async () => {
		const site = (await made(`GRANT SELECT, INSERT, UPDATE ON $TABLE TO ${role}`)).as(role, PASSWORD);
		await workbench.database.query(`ALTER ROLE ${role} SET synchronous_commit = off`);
		try {
			await warns(site, 'Commits are not durable: synchronous_commit is off for this user');
		} finally {
			await workbench.database.query(`ALTER ROLE ${role} RESET synchronous_commit`);
		}
		expect((await site.test()).status).toBe('OK');
	});
});
