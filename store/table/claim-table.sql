-- The claim store's table, schema version 1.0. One row per identity.
--
-- The package runs this by itself on the first claim when "Create Table" is on in the credential. A DBA runs it as:
--   psql -v schema=public -v table=idempotent_claims -f claim-table.sql
-- The n8n user then needs: USAGE on the schema; SELECT, INSERT, UPDATE on the table; DELETE only for purging.

CREATE TABLE :"schema".:"table" (
	-- identity: compared byte for byte
	delivery_id          text COLLATE "C" NOT NULL,
	source               text COLLATE "C" NOT NULL,
	account              text COLLATE "C" NOT NULL,
	action               text COLLATE "C" NOT NULL,
	environment          text COLLATE "C" NOT NULL CHECK (environment IN ('live', 'test')),

	-- life
	state                text COLLATE "C" NOT NULL CHECK (state IN
		('received', 'processing', 'completed', 'retryable_failure', 'outcome_uncertain', 'needs_review')),
	version              integer NOT NULL,             -- fencing number: rises with every new ownership
	attempt              integer NOT NULL,             -- how often the action was begun
	claim_reason         text COLLATE "C" NOT NULL,    -- why the current owner got the claim
	operation            text COLLATE "C" NOT NULL CHECK (operation IN ('claim', 'receive', 'deduplicate')), -- how the delivery came in
	lease_expires_at     timestamptz,
	retry_at             timestamptz,
	first_seen_at        timestamptz NOT NULL,
	updated_at           timestamptz NOT NULL,
	purge_after          timestamptz,                  -- set when the row may be forgotten then: completed, or a test claim

	-- owner
	owner_token          text COLLATE "C" NOT NULL,
	owner_instance_id    text COLLATE "C" NOT NULL,
	owner_workflow_id    text COLLATE "C" NOT NULL,
	owner_execution_id   text COLLATE "C" NOT NULL,
	owner_node_id        text COLLATE "C" NOT NULL,
	owner_node_name      text COLLATE "C" NOT NULL,
	resolved_by          text COLLATE "C",             -- the operator who decided, until the next ownership

	-- settings of the current ownership; whoever comes later reads them here
	lease_seconds        integer NOT NULL,
	when_lease_expires   text COLLATE "C" NOT NULL CHECK (when_lease_expires IN ('outcomeUncertain', 'takeOver')),
	max_attempts         integer NOT NULL,
	retention_days       integer NOT NULL,

	-- the delivery
	event_type           text COLLATE "C",
	fingerprint          text COLLATE "C",             -- a hash
	payload              json,                         -- json, not jsonb: kept as sent, any escape included
	payload_complete     boolean NOT NULL,

	-- the outcome
	outcome_reference    text COLLATE "C",
	outcome_result       json,
	outcome_reason       text COLLATE "C",
	outcome_recorded_at  timestamptz,

	history              jsonb NOT NULL,               -- every transition, oldest first

	PRIMARY KEY (delivery_id, source, account, action, environment)
);

-- What an execution still has open: Complete Claim looks here.
CREATE INDEX ON :"schema".:"table" (owner_execution_id) WHERE state IN ('processing', 'outcome_uncertain');

-- Unfinished work, oldest first: the recovery trigger and the operator look here. It stays small: most claims are finished.
CREATE INDEX ON :"schema".:"table" (source, action, environment, first_seen_at) WHERE state <> 'completed';

-- What may be forgotten: purge looks here.
CREATE INDEX ON :"schema".:"table" (purge_after) WHERE purge_after IS NOT NULL;

COMMENT ON TABLE :"schema".:"table" IS 'n8n-nodes-idempotent-claim, schema 1.0';
