import type { INodeProperties } from 'n8n-workflow';
import { OPERATIONS } from './operations';

const operations = Object.values(OPERATIONS);
const common = { displayName: 'Operation', name: 'operation', type: 'options', noDataExpression: true, default: 'getMany' } as const;

/** What the editor shows of the node. */
export const properties: INodeProperties[] = [
	{ ...common, displayOptions: { hide: { '@tool': [true] } }, options: operations.map(({ option }) => option) },
	{ ...common, displayOptions: { show: { '@tool': [true] } }, options: operations.filter(({ forAgents }) => forAgents).map(({ option }) => option) },
	...operations.flatMap((operation) => operation.properties),
];
