const { dest, src } = require('gulp');

/**
 * Puts into dist/ what tsc leaves behind: icons and codex files, which n8n looks for beside the compiled node or
 * credential, and the SQL of the table, which the store reads and a database administrator may run.
 */
function copyAssets() {
	return src(['nodes/**/*.{svg,node.json}', 'credentials/**/*.svg', 'store/**/*.sql'], {
		// tsc keeps the folders as well.
		base: '.',
		// Bytes, not text.
		encoding: false,
	}).pipe(dest('dist'));
}

exports.default = copyAssets;
