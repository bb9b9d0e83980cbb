/** The environments as the editor lists them. */
export const ENVIRONMENT_OPTIONS = [
	{ name: 'Live', value: 'live', description: 'What senders delivered' },
	{ name: 'Test', value: 'test', description: 'What manual runs claimed' },
];

export const ENVIRONMENTS = ['live', 'test'] as const;
