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
import type { Sample } from './sample';
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

export { changed, request, type Sample } from './sample';

/** One for each preset, by its slug. */
export const SAMPLES: Readonly<Record<string, Sample>> = {
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
	'standard-webhooks': standardWebhooks,
	stripe,
	twilio,
	typeform,
	woocommerce,
	zoom,
};
