import { n8nCommunityNodesPlugin } from '@n8n/eslint-plugin-community-nodes';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

const communityNodes = n8nCommunityNodesPlugin.configs.recommended;

/** Forbids the import of whatever one of the patterns (regular expressions) matches. */
const forbidImports = (...groups) => ({
	'no-restricted-imports': ['error', { patterns: groups.map(([regex, message]) => ({ regex, message })) }],
});

export default defineConfig(
	globalIgnores(['dist/', 'coverage/', 'sandbox/node_modules/', 'sandbox/.data/', 'test/e2e/results/']),

	{ linterOptions: { reportUnusedDisableDirectives: 'error' } },

	{
		files: ['**/*.ts'],
		extends: [tseslint.configs.recommendedTypeChecked],
		languageOptions: { parserOptions: { projectService: true } },
		rules: {
			eqeqeq: 'error',
			'no-var': 'error',
			'prefer-const': 'error',
			// A `_` before the name says that it is there for its place only.
			'@typescript-eslint/no-unused-vars': [
				'error',
				{ argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
			],
			'@typescript-eslint/consistent-type-imports': 'error',
			// n8n's interfaces ask for async methods, also of a node that has nothing to wait for.
			'@typescript-eslint/require-await': 'off',
			// A state or kind that is added later must not fall through a switch unnoticed.
			'@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
		},
	},

	{
		// What is shipped. n8n's log belongs to the person who runs it: what a node has to say goes into items and hints.
		files: ['credentials/**/*.ts', 'nodes/**/*.ts', 'providers/**/*.ts', 'store/**/*.ts'],
		plugins: communityNodes.plugins,
		rules: {
			'no-console': 'error',
			'@n8n/community-nodes/no-dangerous-functions': 'error',
			'@n8n/community-nodes/no-hardcoded-secrets': 'error',
		},
	},

	{
		files: ['credentials/**/*.ts', 'nodes/**/*.ts', 'package.json'],
		extends: [communityNodes],
	},

	{
		files: ['credentials/**/*.ts', 'nodes/**/*.ts'],
		rules: forbidImports(
			['^pg$', 'Only store/ talks to PostgreSQL.'],
			['(^|/)(sandbox|test|bench)/', 'This is not in the package.'],
		),
	},

	{
		// Dependencies point one way: nodes -> store, nodes -> providers. Both can then be read, and tested, without n8n.
		files: ['store/**/*.ts'],
		rules: forbidImports(
			['^(n8n-|@n8n/)', 'store/ knows nothing of n8n: nodes/ translates.'],
			['(^|/)(providers|nodes|credentials|sandbox|test|bench)/', 'store/ imports only from store/.'],
		),
	},
	{
		files: ['providers/**/*.ts'],
		rules: forbidImports(
			['^(n8n-|@n8n/)', 'providers/ knows nothing of n8n: nodes/ translates.'],
			['(^|/)(store|nodes|credentials|sandbox|test|bench)/', 'providers/ imports only from providers/.'],
		),
	},

	{
		files: ['package.json'],
		languageOptions: {
			parser: tseslint.parser,
			parserOptions: { extraFileExtensions: ['.json'] },
		},
		rules: {
			// `pg` on purpose: the package is for self-hosted n8n. n8n accepts no flow nodes for verification anyway, and it
			// installs the dependencies of an unverified package inside that package's own folder.
			'@n8n/community-nodes/no-runtime-dependencies': 'off',
			// Who publishes the package puts name and address here; nobody has yet.
			'@n8n/community-nodes/valid-author': 'off',
			// As long as the package is published nowhere, it has no page to point to.
			'@n8n/community-nodes/require-homepage': 'off',
		},
	},

	{
		// Build and test settings that are plain JavaScript: not part of the TypeScript project.
		files: ['**/*.{js,cjs,mjs}'],
		rules: { eqeqeq: 'error', 'no-var': 'error', 'prefer-const': 'error' },
	},
);
