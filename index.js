// n8n loads the node and credential files listed in package.json; the package exports nothing else.
