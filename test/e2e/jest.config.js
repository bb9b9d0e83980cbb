/** What takes long and a quiet machine: `npm run test:e2e:long` runs it, and it alone. */
const LONG = ['killed.inbox', 'twoInstances', 'examples.upkeep', 'queue'].map((name) => `<rootDir>/test/e2e/${name}.test.ts`);
const runsLong = process.env.E2E_LONG === '1';

/** `npm run test:e2e`: one real n8n with the packed package in it, for all files, one after the other. */
module.exports = {
	rootDir: '../..',
	testEnvironment: 'node',
	testMatch: runsLong ? LONG : ['<rootDir>/test/e2e/**/*.test.ts'],
	testPathIgnorePatterns: ['/node_modules/', ...(runsLong ? [] : LONG)],
	transform: require('../../jest.config.js').transform,
	modulePathIgnorePatterns: ['<rootDir>/dist', '<rootDir>/sandbox/node_modules', '<rootDir>/sandbox/.data'],
	globalSetup: '<rootDir>/test/e2e/support/globalSetup.ts',
	globalTeardown: '<rootDir>/test/e2e/support/globalTeardown.ts',
	testSequencer: '<rootDir>/test/e2e/support/sequencer.js',
	testTimeout: 180000,
};
