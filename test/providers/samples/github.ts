import { changed, request, type Sample } from './sample';

const delivery = request(
	{
		'user-agent': 'GitHub-Hookshot/7b2f1c9',
		'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
		'x-github-event': 'issues',
		'x-github-hook-id': '292430182',
		'x-github-hook-installation-target-id': '79929171',
		'x-github-hook-installation-target-type': 'repository',
		'x-hub-signature-256': 'sha256=d57c',
	},
	{
		action: 'opened',
		issue: { number: 42, title: 'Something is odd', html_url: 'https://github.com/example/shop/issues/42' },
		repository: { id: 79929171, full_name: 'example/shop' },
		sender: { login: 'someone' },
	},
);

export const github: Sample = {
	delivery,
	redelivery: changed(delivery, { 'user-agent': 'GitHub-Hookshot/9d04e55' }),
	anotherEvent: changed(delivery, { 'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0959' }),
	eventType: 'issues',
	retentionDays: 10,
};
