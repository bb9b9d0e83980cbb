const { default: Sequencer } = require('@jest/test-sequencer');

const LAST = 'shutdown.test.ts';

/** By name, but for the file that stops n8n for good. */
module.exports = class extends Sequencer {
	sort(tests) {
		const rank = ({ path }) => (path.endsWith(LAST) ? `1${path}` : `0${path}`);
		return [...tests].sort((one, other) => rank(one).localeCompare(rank(other)));
	}
};
