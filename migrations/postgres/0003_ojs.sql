-- An OJS server: the same tables and columns as migrations/sqlite/0003_ojs.sql. What differs:
-- * `events.tx` is the number of the transaction that wrote the event. Transactions commit in another order than they
--   begin, so a reader of all events looks only at those below the oldest that is still under way.

ALTER TABLE jobs ADD COLUMN tenant TEXT;                -- NULL: nobody's in particular
ALTER TABLE jobs ADD COLUMN visibility_ms BIGINT;      -- how long a lease of this job lasts, whoever holds it
ALTER TABLE jobs ADD COLUMN lease_ms BIGINT;           -- how long the current lease lasts from each beat
ALTER TABLE jobs ADD COLUMN limit_key TEXT;             -- see rate_keys
ALTER TABLE jobs ADD COLUMN unique_key TEXT;            -- fingerprint, for jobs that ask to be unique
ALTER TABLE jobs ADD COLUMN workflow_seq BIGINT;
ALTER TABLE jobs ADD COLUMN workflow_step BIGINT;
ALTER TABLE jobs ADD COLUMN cron_name TEXT;
ALTER TABLE jobs ADD COLUMN held BIGINT NOT NULL DEFAULT 0 CHECK (held IN (0, 1));               -- paused: not to be claimed
ALTER TABLE jobs ADD COLUMN calls_again BIGINT NOT NULL DEFAULT 0;                              -- how often one of its calls was asked to be made again
ALTER TABLE jobs ADD COLUMN dead_letter BIGINT NOT NULL DEFAULT 0 CHECK (dead_letter IN (0, 1)); -- kept for a manual retry when discarded
ALTER TABLE jobs ADD COLUMN runtime_tags TEXT;          -- JSON: what a worker's runtime has to offer
ALTER TABLE jobs ADD COLUMN set_aside BIGINT NOT NULL DEFAULT 0 CHECK (set_aside IN (0, 1));     -- its limit is used up: claims need not look at it
ALTER TABLE jobs ADD COLUMN on_limit TEXT CHECK (on_limit IN ('reschedule', 'drop'));           -- NULL: it waits
CREATE INDEX jobs_unique   ON jobs (unique_key, state, created_at) WHERE unique_key IS NOT NULL;
CREATE INDEX jobs_workflow ON jobs (workflow_seq) WHERE workflow_seq IS NOT NULL;
CREATE INDEX jobs_cron     ON jobs (cron_name) WHERE cron_name IS NOT NULL AND ended_at IS NULL;
CREATE INDEX jobs_dead     ON jobs (seq) WHERE state = 'discarded' AND dead_letter = 1;
CREATE INDEX jobs_running  ON jobs (queue) WHERE state = 'active';
CREATE INDEX jobs_started  ON jobs (limit_key) WHERE state = 'active' AND limit_key IS NOT NULL;
CREATE INDEX jobs_limited  ON jobs (limit_key, queue, kind, priority DESC, seq) WHERE state = 'available' AND limit_key IS NOT NULL;
CREATE INDEX jobs_paused   ON jobs (queue) WHERE state = 'available' AND held = 1;
CREATE INDEX jobs_waiting_in ON jobs (queue, run_at) WHERE state IN ('scheduled', 'retryable');

-- What a claim looks through: neither paused jobs nor those whose limit is used up.
DROP INDEX jobs_available;
CREATE INDEX jobs_available ON jobs (kind, queue, priority DESC, seq) WHERE state = 'available' AND held = 0 AND set_aside = 0;
CREATE INDEX jobs_tenant   ON jobs (tenant, seq) WHERE tenant IS NOT NULL;

-- What the predecessors of a workflow's step returned: JSON list.
ALTER TABLE job_envelopes ADD COLUMN parent_results TEXT;

ALTER TABLE queues ADD COLUMN paused BIGINT NOT NULL DEFAULT 0 CHECK (paused IN (0, 1));
ALTER TABLE queues ADD COLUMN config TEXT;              -- JSON: bounds, limits, retention, attestation
ALTER TABLE queues ADD COLUMN pool TEXT;
ALTER TABLE queues ADD COLUMN weight BIGINT NOT NULL DEFAULT 1 CHECK (weight > 0);
ALTER TABLE queues ADD COLUMN pass BIGINT NOT NULL DEFAULT 0;                                    -- virtual time in its pool
ALTER TABLE queues ADD COLUMN created_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN claims BIGINT NOT NULL DEFAULT 0;                                  -- since it is in its pool
ALTER TABLE queues ADD COLUMN max_depth BIGINT;            -- waiting jobs, at most
ALTER TABLE queues ADD COLUMN max_bytes BIGINT;            -- of their payloads together, at most
ALTER TABLE queues ADD COLUMN warn_at BIGINT;              -- clients are told when this many wait
ALTER TABLE queues ADD COLUMN concurrency BIGINT;          -- active jobs, at most
ALTER TABLE queues ADD COLUMN rate BIGINT;                 -- starts per period
ALTER TABLE queues ADD COLUMN period_ms BIGINT;
ALTER TABLE queues ADD COLUMN throttle_ms BIGINT;          -- least time between two starts
ALTER TABLE queues ADD COLUMN window_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN started BIGINT NOT NULL DEFAULT 0;   -- starts since window_at
ALTER TABLE queues ADD COLUMN next_at BIGINT NOT NULL DEFAULT 0;   -- nothing starts before
ALTER TABLE queues ADD COLUMN opens_at BIGINT;             -- when to ring for those who wait

-- Queues that share workers by weight.
CREATE TABLE pools (
    name       TEXT PRIMARY KEY,
    strategy   TEXT    NOT NULL CHECK (strategy IN ('weighted', 'round_robin', 'strict')),
    config     TEXT    NOT NULL,                        -- JSON: as it was sent
    pass       BIGINT NOT NULL DEFAULT 0,              -- virtual time of the pool
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- Limits that jobs name by a key: what they allow, and what is used of it. What is active is counted when it matters.
CREATE TABLE rate_keys (
    name        TEXT PRIMARY KEY,
    asked       TEXT,                                   -- JSON: the limit that jobs named last
    overridden  BIGINT NOT NULL DEFAULT 0 CHECK (overridden IN (0, 1)),
    concurrency BIGINT,
    rate        BIGINT,                                -- starts per period
    period_ms   BIGINT,
    throttle_ms BIGINT,                                -- least time between two starts
    window_at   BIGINT NOT NULL DEFAULT 0,
    started     BIGINT NOT NULL DEFAULT 0,             -- starts since window_at
    next_at     BIGINT NOT NULL DEFAULT 0,             -- nothing starts before
    booked_at   BIGINT NOT NULL DEFAULT 0,             -- the last start that was promised to a rescheduled job
    waiting     BIGINT NOT NULL DEFAULT 0 CHECK (waiting IN (0, 1)),   -- jobs are set aside for it
    opens_at    BIGINT,                                -- when to ring for them
    CHECK (started >= 0)
);
CREATE INDEX rate_keys_waiting ON rate_keys (next_at) WHERE waiting = 1;
CREATE INDEX rate_keys_opening ON rate_keys (opens_at) WHERE opens_at IS NOT NULL;

-- Workers over HTTP stand beside our own once they have beaten. A directive is what an operator wants of a worker.
ALTER TABLE workers ADD COLUMN kind TEXT NOT NULL DEFAULT 'own' CHECK (kind IN ('own', 'http'));
ALTER TABLE workers ADD COLUMN directive TEXT CHECK (directive IN ('quiet', 'terminate'));

-- What a worker over HTTP saves of its own progress (OJS durable execution, OJS progress).
CREATE TABLE saved_states (
    job_seq  BIGINT PRIMARY KEY,
    state    TEXT    NOT NULL,
    sequence BIGINT NOT NULL,
    at       BIGINT NOT NULL
);
CREATE TABLE progress (
    job_seq    BIGINT PRIMARY KEY,
    millionths BIGINT NOT NULL CHECK (millionths BETWEEN 0 AND 1000000),
    message    TEXT,
    data       TEXT,
    at         BIGINT NOT NULL
);

CREATE TABLE crons (
    tenant         TEXT    NOT NULL,                    -- '': nobody's in particular
    name           TEXT    NOT NULL,
    expression     TEXT    NOT NULL,
    timezone       TEXT    NOT NULL,
    overlap_policy TEXT    NOT NULL CHECK (overlap_policy IN ('skip', 'allow', 'cancel_previous', 'enqueue')),
    missed_policy  TEXT    NOT NULL CHECK (missed_policy IN ('once', 'all', 'skip')),
    enabled        BIGINT  NOT NULL CHECK (enabled IN (0, 1)),
    template       TEXT    NOT NULL,                    -- JSON: the request to enqueue
    description    TEXT,
    created_at     BIGINT  NOT NULL,
    updated_at     BIGINT  NOT NULL,
    next_run_at    BIGINT,
    last_run_at    BIGINT,
    last_job_id    TEXT,
    runs           BIGINT  NOT NULL DEFAULT 0,
    last_error     TEXT,
    PRIMARY KEY (tenant, name),
    CHECK (enabled = 1 OR next_run_at IS NULL)
);
CREATE INDEX crons_due  ON crons (next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX crons_name ON crons (name);

-- What became of the latest occurrences of each entry.
CREATE TABLE cron_runs (
    id           TEXT    NOT NULL PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    scheduled_at BIGINT  NOT NULL,
    at           BIGINT  NOT NULL,
    outcome      TEXT    NOT NULL CHECK (outcome IN ('triggered', 'skipped', 'failed')),
    job_id       TEXT,                                  -- what was made, or what stood in the way
    message      TEXT
);
CREATE INDEX cron_runs_latest ON cron_runs (tenant, name, scheduled_at, id);

-- A workflow takes a number as a job does: its events are the stream of that number.
CREATE TABLE workflows (
    seq        BIGINT PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    tenant     TEXT,
    kind       TEXT    NOT NULL CHECK (kind IN ('chain', 'group', 'batch', 'graph')),
    name       TEXT,
    state      TEXT    NOT NULL CHECK (state IN ('running', 'completed', 'failed', 'cancelled')),
    members    BIGINT NOT NULL,                       -- callbacks do not count
    ended      BIGINT NOT NULL DEFAULT 0,
    succeeded  BIGINT NOT NULL DEFAULT 0,
    events     BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    ended_at   BIGINT,
    CHECK ((state = 'running') = (ended_at IS NULL)),
    CHECK (succeeded <= ended AND ended <= members)
);
CREATE INDEX workflows_ended ON workflows (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE workflow_steps (
    workflow_seq BIGINT NOT NULL,
    step         BIGINT NOT NULL,
    name         TEXT,
    role         TEXT    NOT NULL CHECK (role IN ('member', 'on_complete', 'on_success', 'on_failure')),
    needs        TEXT    NOT NULL,                      -- JSON: steps whose results it gets
    next         TEXT    NOT NULL,                      -- JSON: steps that wait for it
    waits        BIGINT NOT NULL CHECK (waits >= 0),  -- how many steps have to succeed before
    state        TEXT    NOT NULL CHECK (state IN ('waiting', 'enqueued', 'succeeded', 'failed', 'skipped')),
    job_id       TEXT    NOT NULL,
    job_type     TEXT    NOT NULL,
    job          TEXT    NOT NULL,                      -- JSON: the job to be enqueued
    PRIMARY KEY (workflow_seq, step)
);

CREATE TABLE webhooks (
    id           TEXT PRIMARY KEY,
    tenant       TEXT,
    url          TEXT    NOT NULL,
    events       TEXT    NOT NULL,                      -- JSON: list of names, `*` and `job.*` allowed
    filter       TEXT    NOT NULL,                      -- JSON: queues, job types
    metadata     TEXT    NOT NULL,
    secret       TEXT    NOT NULL,
    old_secret   TEXT,                                  -- still signs until old_until
    old_until    BIGINT,
    active       BIGINT NOT NULL CHECK (active IN (0, 1)),
    since        BIGINT NOT NULL,                      -- told of events whose tx is above this
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL
);
CREATE TABLE deliveries (
    id           TEXT PRIMARY KEY,
    webhook_id   TEXT    NOT NULL,
    event_id     TEXT    NOT NULL,
    event        TEXT    NOT NULL,
    body         TEXT    NOT NULL,
    state        TEXT    NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts     BIGINT NOT NULL DEFAULT 0,
    next_at      BIGINT,
    status       BIGINT,
    error        TEXT,
    created_at   BIGINT NOT NULL,
    ended_at     BIGINT,
    CHECK ((state = 'pending') = (next_at IS NOT NULL))
);
CREATE INDEX deliveries_due     ON deliveries (next_at) WHERE state = 'pending';
CREATE INDEX deliveries_webhook ON deliveries (webhook_id, id);
CREATE INDEX deliveries_old     ON deliveries (created_at);

-- How far a reader of all events has come.
CREATE TABLE event_marks (
    name   TEXT PRIMARY KEY,
    tx     BIGINT NOT NULL,
    stream BIGINT NOT NULL,
    seq    BIGINT NOT NULL
);

CREATE TABLE job_schemas (
    job_type   TEXT    NOT NULL,
    version    BIGINT NOT NULL,
    mode       TEXT    NOT NULL CHECK (mode IN ('enforce', 'warn', 'off')),
    body       TEXT    NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (job_type, version)
);

-- A call that is to be made again by the next turn, and of which tool instead of its own.
ALTER TABLE tool_calls ADD COLUMN again BIGINT NOT NULL DEFAULT 0 CHECK (again IN (0, 1));
ALTER TABLE tool_calls ADD COLUMN provider TEXT;
CREATE INDEX tool_calls_again ON tool_calls (job_seq) WHERE again = 1;

-- How often a call was asked to be made again.
CREATE TABLE tool_retries (
    job_seq  BIGINT NOT NULL,
    call_id  TEXT    NOT NULL,
    attempts BIGINT NOT NULL,
    PRIMARY KEY (job_seq, call_id)
);

-- Jobs that were forked or merged from others. All that come from one root may be merged.
CREATE TABLE branches (
    job_seq    BIGINT PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,                 -- the engagement's id, or a plain job's
    name       TEXT,
    root_seq   BIGINT NOT NULL,                        -- the job that all of them come from
    parent_seq BIGINT NOT NULL,
    at_turn    BIGINT NOT NULL,                        -- the first turn of its own
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX branches_name ON branches (root_seq, name) WHERE name IS NOT NULL;

-- Keys that all processes of a fleet share, such as the one that signs receipts.
CREATE TABLE server_keys (
    name       TEXT PRIMARY KEY,
    body       TEXT    NOT NULL,
    created_at BIGINT NOT NULL
);

ALTER TABLE events ADD COLUMN tx BIGINT NOT NULL DEFAULT (pg_current_xact_id()::text::bigint);
CREATE UNIQUE INDEX events_tx ON events (tx, stream, seq);
