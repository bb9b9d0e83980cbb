/** `npm run test:versions`: what sends SQL, on another version of PostgreSQL. */
const everything = require('../../../jest.config.js');

module.exports = {
  ...everything,
  rootDir: '../../..',
  testMatch: ['<rootDir>/test/store/**/*.test.ts', '<rootDir>/test/databases/**/*.test.ts', '<rootDir>/test/nodes/**/*.test.ts'],
};
