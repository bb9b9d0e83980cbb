/** `npm run test:e2e`: one real n8n with the packed package in it, for all files, one after the other. */
module.exports = {
	rootDir: '../..',
	testEnvironment: 'node',
	testMatch: ['<rootDir>/test/e2e/**/*.test.ts'],
	testPathIgnorePatterns: ['/node_modules/'],
	transform: require('../../jest.config.js').transform,
	modulePathIgnorePatterns: ['<rootDir>/dist', '<rootDir>/sandbox/node_modules', '<rootDir>/sandbox/.data'],
	globalSetup: '<rootDir>/test/e2e/support/globalSetup.ts',
	globalTeardown: '<rootDir>/test/e2e/support/globalTeardown.ts',
	testSequencer: '<rootDir>/test/e2e/support/sequencer.js',
	testTimeout: 180000,
};
