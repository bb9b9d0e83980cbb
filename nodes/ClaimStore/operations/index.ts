import type { OperationName, StoreOperation } from '../operation';
import { check } from './check';
import { get } from './get';
import { getMany } from './getMany';
import { purge } from './purge';
import { resolve } from './resolve';
import { summarize } from './summarize';

export const OPERATIONS: Readonly<Record<OperationName, StoreOperation>> = { check, get, getMany, purge, resolve, summarize };
export const OPERATION_NAMES = Object.keys(OPERATIONS) as OperationName[];
