import { NodeHelpers, type INodeParameters, type INodeProperties, type INodePropertyOptions } from 'n8n-workflow';
import { properties } from '../../../nodes/IdempotentClaim/properties';
import { noticesOf, PRESETS, type ProviderPreset } from '../../../providers';
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
		['github', 'ID: header x-github-delivery. Comes again for up to 7 days.'],
		['gitlab', 'ID: header idempotency-key. Comes again, nobody says for how long.'],
		['hubspot', 'ID: portalId + appId + subscriptionId + eventId + more. Comes again for up to 24 hours.'],
		['mailgun', 'ID: id + timestamp. Comes again for up to 8 hours.'],
		['sendgrid', 'ID: field sg_event_id. Comes again for up to 29 hours.'],
		['standard-webhooks', 'ID: header webhook-id or svix-id. Comes again for up to 4 days.'],
		['twilio', 'ID: header i-twilio-idempotency-token. Comes again for up to 1 hour.'],
		['woocommerce', 'ID: x-wc-webhook-id + x-wc-webhook-topic + id + date_modified_gmt. Never comes again by itself.'],
	])('%s: says which ID it reads, and how long a delivery comes again', (slug, description) => {
		expect(options.find(({ value }) => value === slug)?.description).toBe(description);
	});

	test('what they say fits into the two lines of the list', () => {
		expect(options.filter(({ description = '' }) => description.length > 100)).toEqual([]);
	});
});

describe('notices', () => {
	test('none for Custom', () => {
		expect(notices({ provider: 'custom', options: {} })).toEqual([]);
	});

	test.each(PRESETS.map((preset): [string, ProviderPreset] => [preset.slug, preset]))('%s: about this sender, and whether its IDs are known to be stable', (provider, preset) => {
		const shown = notices({ provider, options: {} });
		expect(shown).toEqual(noticesOf(preset));
		expect(shown.filter((text) => text.startsWith(`${preset.displayName} does not document that this delivery ID stays the same`))).toHaveLength(preset.stability === 'notDocumented' ? 1 : 0);
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
		['discord', /Not a delivery: Discord's PING.*204/],
		['shopify', /Each subscription.*x-shopify-event-id/],
	])('%s: what to do before this node', (provider, text) => {
		expect(notices({ provider, options: {} })).toContainEqual(textLike(text));
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
