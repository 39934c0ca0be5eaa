-- An OJS server: what a job may ask beyond what and when, queues that are operated, cron, workflows, webhooks, schemas,
-- and one order of all events.

ALTER TABLE jobs ADD COLUMN tenant TEXT;                -- NULL: nobody's in particular
ALTER TABLE jobs ADD COLUMN visibility_ms INTEGER;      -- how long a lease of this job lasts, whoever holds it
ALTER TABLE jobs ADD COLUMN lease_ms INTEGER;           -- how long the current lease lasts from each beat
ALTER TABLE jobs ADD COLUMN limit_key TEXT;             -- see rate_keys
ALTER TABLE jobs ADD COLUMN unique_key TEXT;            -- fingerprint, for jobs that ask to be unique
ALTER TABLE jobs ADD COLUMN workflow_seq INTEGER;
ALTER TABLE jobs ADD COLUMN workflow_step INTEGER;
ALTER TABLE jobs ADD COLUMN cron_name TEXT;
ALTER TABLE jobs ADD COLUMN held INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1));               -- paused: not to be claimed
ALTER TABLE jobs ADD COLUMN calls_again INTEGER NOT NULL DEFAULT 0;                              -- how often one of its calls was asked to be made again
ALTER TABLE jobs ADD COLUMN dead_letter INTEGER NOT NULL DEFAULT 0 CHECK (dead_letter IN (0, 1)); -- kept for a manual retry when discarded
ALTER TABLE jobs ADD COLUMN runtime_tags TEXT;          -- JSON: what a worker's runtime has to offer
ALTER TABLE jobs ADD COLUMN set_aside INTEGER NOT NULL DEFAULT 0 CHECK (set_aside IN (0, 1));     -- its limit is used up: claims need not look at it
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

ALTER TABLE queues ADD COLUMN paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1));
ALTER TABLE queues ADD COLUMN config TEXT;              -- JSON: bounds, limits, retention, attestation
ALTER TABLE queues ADD COLUMN pool TEXT;
ALTER TABLE queues ADD COLUMN weight INTEGER NOT NULL DEFAULT 1 CHECK (weight > 0);
ALTER TABLE queues ADD COLUMN pass INTEGER NOT NULL DEFAULT 0;                                    -- virtual time in its pool
ALTER TABLE queues ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN claims INTEGER NOT NULL DEFAULT 0;                                  -- since it is in its pool
ALTER TABLE queues ADD COLUMN max_depth INTEGER;            -- waiting jobs, at most
ALTER TABLE queues ADD COLUMN max_bytes INTEGER;            -- of their payloads together, at most
ALTER TABLE queues ADD COLUMN warn_at INTEGER;              -- clients are told when this many wait
ALTER TABLE queues ADD COLUMN concurrency INTEGER;          -- active jobs, at most
ALTER TABLE queues ADD COLUMN rate INTEGER;                 -- starts per period
ALTER TABLE queues ADD COLUMN period_ms INTEGER;
ALTER TABLE queues ADD COLUMN throttle_ms INTEGER;          -- least time between two starts
ALTER TABLE queues ADD COLUMN window_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN started INTEGER NOT NULL DEFAULT 0;   -- starts since window_at
ALTER TABLE queues ADD COLUMN next_at INTEGER NOT NULL DEFAULT 0;   -- nothing starts before
ALTER TABLE queues ADD COLUMN opens_at INTEGER;             -- when to ring for those who wait

-- Queues that share workers by weight.
CREATE TABLE pools (
    name       TEXT PRIMARY KEY,
    strategy   TEXT    NOT NULL CHECK (strategy IN ('weighted', 'round_robin', 'strict')),
    config     TEXT    NOT NULL,                        -- JSON: as it was sent
    pass       INTEGER NOT NULL DEFAULT 0,              -- virtual time of the pool
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Limits that jobs name by a key: what they allow, and what is used of it. What is active is counted when it matters.
CREATE TABLE rate_keys (
    name        TEXT PRIMARY KEY,
    asked       TEXT,                                   -- JSON: the limit that jobs named last
    overridden  INTEGER NOT NULL DEFAULT 0 CHECK (overridden IN (0, 1)),
    concurrency INTEGER,
    rate        INTEGER,                                -- starts per period
    period_ms   INTEGER,
    throttle_ms INTEGER,                                -- least time between two starts
    window_at   INTEGER NOT NULL DEFAULT 0,
    started     INTEGER NOT NULL DEFAULT 0,             -- starts since window_at
    next_at     INTEGER NOT NULL DEFAULT 0,             -- nothing starts before
    booked_at   INTEGER NOT NULL DEFAULT 0,             -- the last start that was promised to a rescheduled job
    waiting     INTEGER NOT NULL DEFAULT 0 CHECK (waiting IN (0, 1)),   -- jobs are set aside for it
    opens_at    INTEGER,                                -- when to ring for them
    CHECK (started >= 0)
) WITHOUT ROWID;
CREATE INDEX rate_keys_waiting ON rate_keys (next_at) WHERE waiting = 1;
CREATE INDEX rate_keys_opening ON rate_keys (opens_at) WHERE opens_at IS NOT NULL;

-- Workers over HTTP stand beside our own once they have beaten. A directive is what an operator wants of a worker.
ALTER TABLE workers ADD COLUMN kind TEXT NOT NULL DEFAULT 'own' CHECK (kind IN ('own', 'http'));
ALTER TABLE workers ADD COLUMN directive TEXT CHECK (directive IN ('quiet', 'terminate'));

-- What a worker over HTTP saves of its own progress (OJS durable execution, OJS progress).
CREATE TABLE saved_states (
    job_seq  INTEGER PRIMARY KEY,
    state    TEXT    NOT NULL,
    sequence INTEGER NOT NULL,
    at       INTEGER NOT NULL
);
CREATE TABLE progress (
    job_seq    INTEGER PRIMARY KEY,
    millionths INTEGER NOT NULL CHECK (millionths BETWEEN 0 AND 1000000),
    message    TEXT,
    data       TEXT,
    at         INTEGER NOT NULL
);

CREATE TABLE crons (
    tenant         TEXT    NOT NULL,                    -- '': nobody's in particular
    name           TEXT    NOT NULL,
    expression     TEXT    NOT NULL,
    timezone       TEXT    NOT NULL,
    overlap_policy TEXT    NOT NULL CHECK (overlap_policy IN ('skip', 'allow', 'cancel_previous', 'enqueue')),
    missed_policy  TEXT    NOT NULL CHECK (missed_policy IN ('once', 'all', 'skip')),
    enabled        INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    template       TEXT    NOT NULL,                    -- JSON: the request to enqueue
    description    TEXT,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    next_run_at    INTEGER,
    last_run_at    INTEGER,
    last_job_id    TEXT,
    runs           INTEGER NOT NULL DEFAULT 0,
    last_error     TEXT,
    PRIMARY KEY (tenant, name),
    CHECK (enabled = 1 OR next_run_at IS NULL)
) WITHOUT ROWID;
CREATE INDEX crons_due  ON crons (next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX crons_name ON crons (name);

-- What became of the latest occurrences of each entry.
CREATE TABLE cron_runs (
    id           TEXT    NOT NULL PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    scheduled_at INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    outcome      TEXT    NOT NULL CHECK (outcome IN ('triggered', 'skipped', 'failed')),
    job_id       TEXT,                                  -- what was made, or what stood in the way
    message      TEXT
) WITHOUT ROWID;
CREATE INDEX cron_runs_latest ON cron_runs (tenant, name, scheduled_at, id);

-- A workflow takes a number as a job does: its events are the stream of that number.
CREATE TABLE workflows (
    seq        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    tenant     TEXT,
    kind       TEXT    NOT NULL CHECK (kind IN ('chain', 'group', 'batch', 'graph')),
    name       TEXT,
    state      TEXT    NOT NULL CHECK (state IN ('running', 'completed', 'failed', 'cancelled')),
    members    INTEGER NOT NULL,                       -- callbacks do not count
    ended      INTEGER NOT NULL DEFAULT 0,
    succeeded  INTEGER NOT NULL DEFAULT 0,
    events     INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    ended_at   INTEGER,
    CHECK ((state = 'running') = (ended_at IS NULL)),
    CHECK (succeeded <= ended AND ended <= members)
);
CREATE INDEX workflows_ended ON workflows (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE workflow_steps (
    workflow_seq INTEGER NOT NULL,
    step         INTEGER NOT NULL,
    name         TEXT,
    role         TEXT    NOT NULL CHECK (role IN ('member', 'on_complete', 'on_success', 'on_failure')),
    needs        TEXT    NOT NULL,                      -- JSON: steps whose results it gets
    next         TEXT    NOT NULL,                      -- JSON: steps that wait for it
    waits        INTEGER NOT NULL CHECK (waits >= 0),  -- how many steps have to succeed before
    state        TEXT    NOT NULL CHECK (state IN ('waiting', 'enqueued', 'succeeded', 'failed', 'skipped')),
    job_id       TEXT    NOT NULL,
    job_type     TEXT    NOT NULL,
    job          TEXT    NOT NULL,                      -- JSON: the job to be enqueued
    PRIMARY KEY (workflow_seq, step)
) WITHOUT ROWID;

CREATE TABLE webhooks (
    id           TEXT PRIMARY KEY,
    tenant       TEXT,
    url          TEXT    NOT NULL,
    events       TEXT    NOT NULL,                      -- JSON: list of names, `*` and `job.*` allowed
    filter       TEXT    NOT NULL,                      -- JSON: queues, job types
    metadata     TEXT    NOT NULL,
    secret       TEXT    NOT NULL,
    old_secret   TEXT,                                  -- still signs until old_until
    old_until    INTEGER,
    active       INTEGER NOT NULL CHECK (active IN (0, 1)),
    since        INTEGER NOT NULL,                      -- told of events whose tx is above this
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE deliveries (
    id           TEXT PRIMARY KEY,
    webhook_id   TEXT    NOT NULL,
    event_id     TEXT    NOT NULL,
    event        TEXT    NOT NULL,
    body         TEXT    NOT NULL,
    state        TEXT    NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts     INTEGER NOT NULL DEFAULT 0,
    next_at      INTEGER,
    status       INTEGER,
    error        TEXT,
    created_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    CHECK ((state = 'pending') = (next_at IS NOT NULL))
) WITHOUT ROWID;
CREATE INDEX deliveries_due     ON deliveries (next_at) WHERE state = 'pending';
CREATE INDEX deliveries_webhook ON deliveries (webhook_id, id);
CREATE INDEX deliveries_old     ON deliveries (created_at);

-- How far a reader of all events has come.
CREATE TABLE event_marks (
    name   TEXT PRIMARY KEY,
    tx     INTEGER NOT NULL,
    stream INTEGER NOT NULL,
    seq    INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE job_schemas (
    job_type   TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    mode       TEXT    NOT NULL CHECK (mode IN ('enforce', 'warn', 'off')),
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (job_type, version)
) WITHOUT ROWID;

-- A call that is to be made again by the next turn, and of which tool instead of its own.
ALTER TABLE tool_calls ADD COLUMN again INTEGER NOT NULL DEFAULT 0 CHECK (again IN (0, 1));
ALTER TABLE tool_calls ADD COLUMN provider TEXT;
CREATE INDEX tool_calls_again ON tool_calls (job_seq) WHERE again = 1;

-- How often a call was asked to be made again.
CREATE TABLE tool_retries (
    job_seq  INTEGER NOT NULL,
    call_id  TEXT    NOT NULL,
    attempts INTEGER NOT NULL,
    PRIMARY KEY (job_seq, call_id)
) WITHOUT ROWID;

-- Jobs that were forked or merged from others. All that come from one root may be merged.
CREATE TABLE branches (
    job_seq    INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,                 -- the engagement's id, or a plain job's
    name       TEXT,
    root_seq   INTEGER NOT NULL,                        -- the job that all of them come from
    parent_seq INTEGER NOT NULL,
    at_turn    INTEGER NOT NULL,                        -- the first turn of its own
    created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX branches_name ON branches (root_seq, name) WHERE name IS NOT NULL;

-- Keys that all processes of a fleet share, such as the one that signs receipts.
CREATE TABLE server_keys (
    name       TEXT PRIMARY KEY,
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

-- One order of all events: `tx` grows with every event, also when the newest were deleted. (PostgreSQL: with every
-- transaction.)
ALTER TABLE events RENAME TO events_of_0002;
CREATE TABLE events (
    tx      INTEGER PRIMARY KEY AUTOINCREMENT,
    stream  INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    job_seq INTEGER NOT NULL,
    name    TEXT    NOT NULL,
    turn    INTEGER NOT NULL,
    data    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    UNIQUE (stream, seq)
);
INSERT INTO events (stream, seq, job_seq, name, turn, data, at)
SELECT stream, seq, job_seq, name, turn, data, at FROM events_of_0002 ORDER BY at, stream, seq;
DROP TABLE events_of_0002;
