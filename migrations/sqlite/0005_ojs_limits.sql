-- What queues keep of ended jobs, and what tenants may have.

-- How long ended jobs of a queue are kept; NULL: as long as the fleet keeps all others.
ALTER TABLE queues ADD COLUMN keep_completed_ms INTEGER;
ALTER TABLE queues ADD COLUMN keep_discarded_ms INTEGER;
ALTER TABLE queues ADD COLUMN keep_cancelled_ms INTEGER;
CREATE INDEX jobs_ended_in ON jobs (queue, state, ended_at) WHERE ended_at IS NOT NULL;

-- What an operator allows a tenant; NULL: as much as it likes.
CREATE TABLE tenant_limits (
    tenant           TEXT PRIMARY KEY,
    max_concurrency  INTEGER,                           -- active jobs, at most
    max_queue_depth  INTEGER,                           -- waiting jobs, at most
    max_scheduled    INTEGER,                           -- of them scheduled ones, at most
    enqueue_rate     INTEGER,                           -- accepted jobs per period
    enqueue_period_ms INTEGER,
    window_at        INTEGER NOT NULL DEFAULT 0,
    enqueued         INTEGER NOT NULL DEFAULT 0,        -- accepted since window_at
    reason           TEXT,                              -- why it was set, in the operator's words
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX jobs_tenant_living ON jobs (tenant, state) WHERE tenant IS NOT NULL AND ended_at IS NULL;

-- A limit that jobs name is forgotten with the last job that names it.
CREATE INDEX jobs_of_limit ON jobs (limit_key) WHERE limit_key IS NOT NULL;
