-- What queues keep of ended jobs, and what tenants may have. The same tables and columns as migrations/sqlite/0005_ojs_limits.sql.

-- How long ended jobs of a queue are kept; NULL: as long as the fleet keeps all others.
ALTER TABLE queues ADD COLUMN keep_completed_ms BIGINT;
ALTER TABLE queues ADD COLUMN keep_discarded_ms BIGINT;
ALTER TABLE queues ADD COLUMN keep_cancelled_ms BIGINT;
CREATE INDEX jobs_ended_in ON jobs (queue, state, ended_at) WHERE ended_at IS NOT NULL;

-- What an operator allows a tenant; NULL: as much as it likes.
CREATE TABLE tenant_limits (
    tenant           TEXT PRIMARY KEY,
    max_concurrency  BIGINT,                           -- active jobs, at most
    max_queue_depth  BIGINT,                           -- waiting jobs, at most
    max_scheduled    BIGINT,                           -- of them scheduled ones, at most
    enqueue_rate     BIGINT,                           -- accepted jobs per period
    enqueue_period_ms BIGINT,
    window_at        BIGINT NOT NULL DEFAULT 0,
    enqueued         BIGINT NOT NULL DEFAULT 0,        -- accepted since window_at
    reason           TEXT,                              -- why it was set, in the operator's words
    created_at       BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL
);
CREATE INDEX jobs_tenant_living ON jobs (tenant, state) WHERE tenant IS NOT NULL AND ended_at IS NULL;

-- A limit that jobs name is forgotten with the last job that names it.
CREATE INDEX jobs_of_limit ON jobs (limit_key) WHERE limit_key IS NOT NULL;
