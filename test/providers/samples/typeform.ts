import { changed, request, type Sample } from './sample';

const delivery = request(
	{ 'user-agent': 'Typeform Webhooks', 'typeform-signature': 'sha256=u2pP' },
	{
		event_id: '01KCX3B8W0E2Q6M4S9T1V7Y5ZA',
		event_type: 'form_response',
		form_response: {
			form_id: 'lT4Z3j',
			token: 'a3a12ec67a1365927098a606107fac15',
			landed_at: '2026-11-02T09:13:05Z',
			submitted_at: '2026-11-02T09:14:05Z',
			answers: [{ type: 'email', email: 'visitor@example.com', field: { id: 'DlXFaesGBpoF', type: 'email' } }],
		},
	},
);

export const typeform: Sample = {
	delivery,
	redelivery: changed(delivery, { 'x-forwarded-for': '203.0.113.21' }),
	anotherEvent: changed(delivery, {}, { event_id: '01KCX3B8W0E2Q6M4S9T1V7Y5ZB' }),
	eventType: 'form_response',
	retentionDays: 3,
};
