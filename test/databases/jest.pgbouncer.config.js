/** `npm run test:pooler`: what needs PgBouncer, a program of the system. */
const everything = require('../../jest.config.js');

module.exports = {
  ...everything,
  rootDir: '../..',
  testMatch: ['<rootDir>/test/databases/**/*.pooler.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  globalSetup: '<rootDir>/test/databases/support/poolerSetup.ts',
};
