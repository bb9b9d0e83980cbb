/** The node's outputs, in the order in which they leave it. */
export const NEW_CLAIM = 0;
export const KNOWN_DUPLICATE = 1;
export const OPERATIONAL_ERROR = 2;
