/**
 * Adds up what the stages of `.ci/run` came to and prints `N passed, N failed` as its only line.
 *
 * Usage: node count.js [<exit status> <jest report, or ''>]...
 */
const { readFileSync } = require('node:fs');

let passed = 0;
let failed = 0;

for (let index = 2; index < process.argv.length; index += 2) {
	const status = Number(process.argv[index]);
	const report = readReport(process.argv[index + 1]);
	passed += report.passed;
	// Something failed outside of any test: lint, a build, a test run that broke off or left no report.
	failed += status !== 0 && report.failed === 0 ? 1 : report.failed;
}

console.log(`${passed} passed, ${failed} failed`);
process.exitCode = passed > 0 && failed === 0 ? 0 : 1;

function readReport(file) {
	if (!file) return { passed: 0, failed: 0 };
	try {
		const report = JSON.parse(readFileSync(file, 'utf8'));
		// A suite that could not even be loaded has no tests to count, and is one failure.
		return { passed: report.numPassedTests, failed: report.numFailedTests + report.numRuntimeErrorTestSuites };
	} catch {
		return { passed: 0, failed: 1 };
	}
}
