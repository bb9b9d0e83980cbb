const { dest, src } = require('gulp');

/** tsc leaves icons and codex files behind; n8n looks for both beside the compiled node or credential. */
function copyIconsAndCodex() {
  // encoding: false copies bytes; base: '.' keeps the folders, as tsc does.
  return src(['nodes/**/*.{svg,node.json}', 'credentials/**/*.svg'], { base: '.', encoding: false }).pipe(dest('dist'));
}

exports.default = copyIconsAndCodex;
