/**
 * Loads an installed package with n8n's own loader and prints, as JSON, what n8n then knows about it. A process of its
 * own: inside jest, `require` is jest's, and finds modules in other places than n8n's.
 *
 * Usage: node loadAsN8n.cjs <folder of the installed package>
 */
const Module = require('node:module');

// n8n does the same before it loads packages (`LoadNodesAndCredentials.init`): where a package has no n8n-workflow
// of its own, `require` finds n8n's.
process.env.NODE_PATH = module.paths.join(require('node:path').delimiter);
Module._initPaths();

const { PackageDirectoryLoader } = require('n8n-core');

async function main(folder) {
	const loader = new PackageDirectoryLoader(folder);
	await loader.loadAll();

	const requireFromPackage = Module.createRequire(`${loader.directory}/package.json`);
	process.stdout.write(
		JSON.stringify({
			nodes: loader.types.nodes,
			credentials: loader.types.credentials,
			workflowModule: requireFromPackage.resolve('n8n-workflow'),
			workflowModuleOfN8n: require.resolve('n8n-workflow'),
		}),
	);
}

main(process.argv[2]).catch((error) => {
	process.stderr.write(`${error.stack}\n`);
	process.exitCode = 1;
});
