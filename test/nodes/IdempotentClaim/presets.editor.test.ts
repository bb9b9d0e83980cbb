import { NodeHelpers, type INodeParameters, type INodeProperties, type INodePropertyOptions } from 'n8n-workflow';
import { properties } from '../../../nodes/IdempotentClaim/properties';
import { PRESETS } from '../../../providers';
import { SAMPLES } from '../../providers/samples';
import { textLike, textWith } from '../../support/matchers';
import { claimNode, completeNode, guarded, Workbench } from '../../support/workbench';

/** What the editor shows of a provider: before anything runs, and in the hints of a test run. */

const slugs = PRESETS.map(({ slug }) => slug);

/** The notices that n8n shows for these parameters. */
function notices(parameters: INodeParameters): string[] {
	const isShown = (property: INodeProperties) => property.type === 'notice' && NodeHelpers.displayParameter(parameters, property, null, null);
	return properties.filter(isShown).map(({ displayName }) => displayName);
}

describe('the list of providers', () => {
	const options = properties.find(({ name }) => name === 'provider')?.options as INodePropertyOptions[];

	test('Custom, then everybody in alphabetical order', () => {
		const [custom, ...others] = options.map(({ name }) => name);
		expect(custom).toBe('Custom');
		expect(others).toEqual([...others].sort((a, b) => a.localeCompare(b, 'en')));
		expect(options.map(({ value }) => value)).toEqual(['custom', ...slugs]);
	});

	test.each([
		['github', /x-github-delivery.*Comes again only when somebody asks.*10 days/],
		['hubspot', /portalId.*eventId.*occurredAt.*Comes again up to 10 times in 24 hours.*3 days/],
		['standard-webhooks', /webhook-id or the header svix-id.*Comes again for about 76 hours/],
	])('%s: says which ID it reads, and how long a delivery comes again', (slug, description) => {
		expect(options.find(({ value }) => value === slug)?.description).toEqual(textLike(description));
	});
});

describe('notices', () => {
	test('none for Custom', () => {
		expect(notices({ provider: 'custom', options: {} })).toEqual([]);
	});

	test.each(slugs)('%s: at most one, about this sender only', (provider) => {
		const shown = notices({ provider, options: {} });
		const { displayName, stability } = PRESETS.find(({ slug }) => slug === provider) as (typeof PRESETS)[number];
		expect(shown.length).toBeLessThanOrEqual(1);
		expect(shown.some((text) => text.startsWith(`${displayName} does not document that this delivery ID stays the same`))).toBe(stability === 'notDocumented');
	});

	test('whose stability is not documented', () => {
		const silent = PRESETS.filter(({ stability }) => stability === 'notDocumented').map(({ slug }) => slug);
		expect(silent).toEqual(['calendly', 'discord', 'intercom', 'linear', 'twilio', 'typeform', 'woocommerce', 'zoom']);
	});

	test.each([
		['sendgrid', /several events in one array.*Split Out/],
		['hubspot', /several events in one array.*Split Out/],
		['slack', /Not a delivery: Slack's challenge.*Respond to Webhook/],
		['zoom', /Not a delivery: Zoom's check.*Crypto/],
		['discord', /204.*Not a delivery: Discord's PING/],
	])('%s: what to do before this node', (provider, text) => {
		expect(notices({ provider, options: {} })).toEqual([textLike(text)]);
	});
});

describe('a retention that is shorter than the sender delivers again', () => {
	const ofRetention = (parameters: INodeParameters) => notices(parameters).filter((text) => text.includes('Retention'));

	test('is said beside the options', () => {
		expect(ofRetention({ provider: 'stripe', options: { retentionDays: 29 } })).toEqual([textLike(/Stripe may deliver an event again for 30 days/)]);
		expect(ofRetention({ provider: 'paddle', options: { retentionDays: 30 } })).toEqual([textLike(/Paddle.*90 days/)]);
		expect(ofRetention({ provider: 'slack', options: { retentionDays: 1 } })).toEqual([textLike(/Slack.*2 days/)]);
	});

	test('and not of a longer one, none, another sender or Custom', () => {
		expect(ofRetention({ provider: 'stripe', options: { retentionDays: 30 } })).toEqual([]);
		expect(ofRetention({ provider: 'stripe', options: {} })).toEqual([]);
		expect(ofRetention({ provider: 'zoom', options: { retentionDays: 1 } })).toEqual([]);
		expect(ofRetention({ provider: 'custom', options: { retentionDays: 1 } })).toEqual([]);
	});

	describe('in a test run', () => {
		let workbench: Workbench;
		beforeAll(async () => (workbench = await Workbench.open()));
		afterEach(async () => await workbench.clear());
		afterAll(async () => await workbench.close());

		const hints = async (retentionDays: unknown) => {
			const workflow = guarded(claimNode({ provider: 'stripe', source: '', deliveryId: '', options: { retentionDays } as INodeParameters }));
			workflow.nodes.Complete = completeNode();
			workflow.lines.push('Action -> Complete');
			return (await workbench.run(workflow, { mode: 'manual', items: [{ json: SAMPLES.stripe.delivery }] })).hintsOf('Claim');
		};

		test('is a hint, also when an expression sets it', async () => {
			expect(await hints(29)).toEqual([textWith('Stripe may deliver an event again for 30 days')]);
			await workbench.clear();
			expect(await hints('={{ 4 + 3 }}')).toEqual([textWith('Stripe may deliver an event again for 30 days')]);
		});

		test('is none when it is long enough', async () => {
			expect(await hints(30)).toEqual([]);
		});

		test('whose expression fails is the only thing that is said', async () => {
			expect(await hints('={{ $("Nowhere").item.json.days }}')).toEqual([textWith('Options failed')]);
		});
	});
});
