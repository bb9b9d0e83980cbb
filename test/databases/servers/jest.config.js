/**
 * `npm run test:versions`: whatever decides in SQL, on another version of PostgreSQL. Left out is what is about the
 * line, about time-outs and about other programs: that is the same with every server. The oldest and the newest of them
 * also run the three files that take as long as all others together.
 */
const everything = require('../../../jest.config.js');

const between = ['14', '15', '16'].includes(process.env.TEST_POSTGRES);

const tests = (...patterns) => patterns.map((pattern) => `<rootDir>/test/${pattern}.test.ts`);

module.exports = {
  ...everything,
  rootDir: '../../..',
  testPathIgnorePatterns: [...everything.testPathIgnorePatterns, ...(between ? ['/databases/firstClaim', '/store/claim.batches', '/store/claim.busyKey'] : [])],
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
