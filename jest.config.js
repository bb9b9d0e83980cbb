const { availableParallelism } = require('node:os');

/** Tests run from the TypeScript sources; types are checked apart, by `npm run typecheck`. */
module.exports = {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  // These need a running n8n and a browser (`npm run test:e2e`) or PgBouncer (`npm run test:pooler`).
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/e2e/', '\\.pooler\\.test\\.ts$'],
  transform: { '^.+\\.ts$': ['@swc/jest', { jsc: { parser: { syntax: 'typescript', decorators: true }, target: 'es2022' } }] },
  modulePathIgnorePatterns: ['<rootDir>/dist', '<rootDir>/sandbox/node_modules', '<rootDir>/sandbox/.data', '<rootDir>/test/databases/servers/node_modules'],
  globalSetup: '<rootDir>/test/support/globalSetup.ts',
  globalTeardown: '<rootDir>/test/support/globalTeardown.ts',
  // Most files wait for a server more than they reckon; jest's own choice on two cores is one at a time.
  maxWorkers: Math.max(2, availableParallelism() - 1),
  testTimeout: 60000,
};
