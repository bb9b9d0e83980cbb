/** The node's outputs, in the order in which they leave it. */
export const RECORDED = 0;
export const STALE_CLAIM = 1;
export const OPERATIONAL_ERROR = 2;
