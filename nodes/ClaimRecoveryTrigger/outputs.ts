/** The node's outputs, in the order in which they leave it. */
export const READY_TO_RUN = 0;
export const RECONCILE_FIRST = 1;
