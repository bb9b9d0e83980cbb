/**
 * `npm run test:versions`: whatever decides in SQL, on another version of PostgreSQL. Left out is what is about the
 * line, about time-outs and about other programs: that is the same with every server.
 */
const everything = require('../../../jest.config.js');

const tests = (...patterns) => patterns.map((pattern) => `<rootDir>/test/${pattern}.test.ts`);

module.exports = {
  ...everything,
  rootDir: '../../..',
  testMatch: tests(
    'databases/!(pgbouncer*|tls*|tunnel*)',
    'store/claim.@(batches|busyKey|decisions|environments|movingRecord|repeats|settings)',
    'store/@(recovery|operator)',
    'store/identity.storage',
    'store/outcome.*',
    'store/table.*',
    'nodes/CompleteClaim/@(claimFrom|outcomes)*',
    'nodes/IdempotentClaim/@(decisions|environments|unconnectedError)*',
  ),
};
