/** SQL assignments that leave a claim as time would, so that no test has to wait. */
export const LEASE_OVER = `lease_expires_at = now() - interval '1 second'`;
export const RETRY_DUE = `retry_at = now() - interval '1 second'`;
