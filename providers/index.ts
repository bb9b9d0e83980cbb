import { calendly } from './calendly';
import { discord } from './discord';
import { github } from './github';
import { gitlab } from './gitlab';
import { hubspot } from './hubspot';
import { intercom } from './intercom';
import { jira } from './jira';
import { linear } from './linear';
import { mailgun } from './mailgun';
import { paddle } from './paddle';
import { paypal } from './paypal';
import type { ProviderPreset } from './preset';
import { sendgrid } from './sendgrid';
import { shopify } from './shopify';
import { slack } from './slack';
import { square } from './square';
import { standardWebhooks } from './standardWebhooks';
import { stripe } from './stripe';
import { twilio } from './twilio';
import { typeform } from './typeform';
import { woocommerce } from './woocommerce';
import { zoom } from './zoom';

export type { Part, Place, ProviderPreset } from './preset';
export { compositeId, partsOf, readDelivery, type Delivery } from './readDelivery';
export { whyNoDeliveryId } from './whyNoDeliveryId';
export { comesAgainInShort, daysInWords, deliveryIdInShort, noticesOf, placesInWords, retentionTooShort, sourceInWords, windowInDays } from './words';

/** All presets, in the order in which the editor lists them. */
export const PRESETS: readonly ProviderPreset[] = [
	calendly,
	discord,
	github,
	gitlab,
	hubspot,
	intercom,
	jira,
	linear,
	mailgun,
	paddle,
	paypal,
	sendgrid,
	shopify,
	slack,
	square,
	standardWebhooks,
	stripe,
	twilio,
	typeform,
	woocommerce,
	zoom,
];

export function presetOf(slug: string): ProviderPreset | undefined {
	return PRESETS.find((preset) => preset.slug === slug);
}
