-- The main job: jobs, engagements, turns, tools, budgets, reviews, events, agents.
--
-- Times are milliseconds since the epoch, bound by the caller. Ids are UUIDv7 text made in Rust; `seq` columns are
-- small integers that only the store sees. JSON is opaque here: whatever is filtered on is a column.

-- One row per job, narrow: everything that changes while the job lives. What the client sent is in job_envelopes.
CREATE TABLE jobs (
    seq              INTEGER PRIMARY KEY,           -- order of acceptance: first in, first out
    id               TEXT    NOT NULL UNIQUE,
    job_type         TEXT    NOT NULL,
    kind             TEXT    NOT NULL CHECK (kind IN ('agent', 'plain')),
    queue            TEXT    NOT NULL,
    state            TEXT    NOT NULL CHECK (state IN ('scheduled', 'available', 'pending', 'active',
                                                       'completed', 'retryable', 'cancelled', 'discarded')),
    priority         INTEGER NOT NULL CHECK (priority BETWEEN -100 AND 100),
    attempt          INTEGER NOT NULL DEFAULT 0,    -- claims; never falls
    failures         INTEGER NOT NULL DEFAULT 0,    -- what the retry policy counts
    lapses           INTEGER NOT NULL DEFAULT 0,    -- leases that ran out since the last checkpoint
    created_at       INTEGER NOT NULL,
    run_at           INTEGER NOT NULL,
    started_at       INTEGER,
    ended_at         INTEGER,
    expires_at       INTEGER,
    timeout_ms       INTEGER,
    engagement_seq   INTEGER,                       -- NULL for a plain job
    stream           INTEGER NOT NULL,              -- seq of the first job of its event stream
    position         TEXT,                          -- JSON: where an agent job stands between turns
    reserved         INTEGER NOT NULL DEFAULT 0,    -- this job's share of its budget's reservations
    tokens_used      INTEGER NOT NULL DEFAULT 0,
    events           INTEGER NOT NULL DEFAULT 0,    -- events of a plain job's stream
    worker_id        TEXT,
    lease_token      TEXT,
    lease_expires_at INTEGER,
    retry_delay_ms   INTEGER,
    CHECK (attempt >= 0 AND failures >= 0 AND reserved >= 0 AND tokens_used >= 0),
    CHECK ((kind = 'agent') = (engagement_seq IS NOT NULL)),
    CHECK ((state = 'active') = (lease_token IS NOT NULL)),
    CHECK ((state = 'active') = (lease_expires_at IS NOT NULL)),
    CHECK ((state IN ('completed', 'cancelled', 'discarded')) = (ended_at IS NOT NULL)),
    CHECK (state = 'active' OR reserved = 0)
);
CREATE INDEX jobs_available ON jobs (kind, queue, priority DESC, seq) WHERE state = 'available';
CREATE INDEX jobs_waiting   ON jobs (run_at) WHERE state IN ('scheduled', 'retryable');
CREATE INDEX jobs_active    ON jobs (seq) WHERE state = 'active';
CREATE INDEX jobs_expiring  ON jobs (expires_at) WHERE expires_at IS NOT NULL AND ended_at IS NULL;
CREATE INDEX jobs_engagement ON jobs (engagement_seq) WHERE engagement_seq IS NOT NULL;

-- What the client sent, as sent. Written once.
CREATE TABLE job_envelopes (
    job_seq INTEGER PRIMARY KEY,
    retry   TEXT NOT NULL,
    args    TEXT NOT NULL,
    meta    TEXT NOT NULL,
    options TEXT NOT NULL,
    extra   TEXT NOT NULL
);

CREATE TABLE job_results (
    job_seq INTEGER PRIMARY KEY,
    result  TEXT NOT NULL
);

CREATE TABLE job_errors (
    job_seq INTEGER NOT NULL,
    failure INTEGER NOT NULL,                       -- 1-based; a job that was ended by the scheduler has one, too
    attempt INTEGER NOT NULL,
    error   TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (job_seq, failure)
) WITHOUT ROWID;

-- Queues that have ever had a job.
CREATE TABLE queues (
    name TEXT PRIMARY KEY
) WITHOUT ROWID;

-- Agent definitions by content, so that engagements of the same agent share one row.
CREATE TABLE agent_definitions (
    digest     TEXT PRIMARY KEY,
    definition TEXT NOT NULL
) WITHOUT ROWID;

-- Registered agents by name.
CREATE TABLE agents (
    name       TEXT PRIMARY KEY,
    digest     TEXT    NOT NULL,
    source     TEXT    NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE engagements (
    seq        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    agent_name TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    user_email TEXT,
    started_at INTEGER NOT NULL,
    budget_seq INTEGER NOT NULL,
    turns      INTEGER NOT NULL DEFAULT 0,          -- complete turns
    events     INTEGER NOT NULL DEFAULT 0,          -- events of its stream
    messages   INTEGER NOT NULL DEFAULT 0
);

-- One row per budget. What is spent and what is set aside never exceed the limit together.
CREATE TABLE budgets (
    seq         INTEGER PRIMARY KEY,
    token_limit INTEGER,                            -- NULL is unlimited
    settled     INTEGER NOT NULL DEFAULT 0,
    reserved    INTEGER NOT NULL DEFAULT 0,
    CHECK (settled >= 0 AND reserved >= 0),
    CHECK (token_limit IS NULL OR settled + reserved <= token_limit)
);

-- Append-only: the key is the guarantee that no phase is committed twice.
CREATE TABLE checkpoints (
    job_seq     INTEGER NOT NULL,
    turn        INTEGER NOT NULL,
    phase       INTEGER NOT NULL CHECK (phase BETWEEN 0 AND 6),
    version     INTEGER NOT NULL,
    body        TEXT    NOT NULL,
    duration_ms INTEGER NOT NULL,
    tokens_in   INTEGER NOT NULL,
    tokens_out  INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (job_seq, turn, phase)
) WITHOUT ROWID;

-- Append-only.
CREATE TABLE messages (
    engagement_seq INTEGER NOT NULL,
    seq            INTEGER NOT NULL,
    job_seq        INTEGER NOT NULL,
    turn           INTEGER NOT NULL,
    message        TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    PRIMARY KEY (engagement_seq, seq)
) WITHOUT ROWID;

-- The tool journal: intent before a call, outcome after it.
CREATE TABLE tool_calls (
    seq            INTEGER PRIMARY KEY,
    call_id        TEXT    NOT NULL UNIQUE,
    job_seq        INTEGER NOT NULL,
    engagement_seq INTEGER NOT NULL,
    turn           INTEGER NOT NULL,
    position       INTEGER NOT NULL,
    name           TEXT    NOT NULL,
    input          TEXT    NOT NULL,
    idempotent     INTEGER NOT NULL CHECK (idempotent IN (0, 1)),
    state          TEXT    NOT NULL CHECK (state IN ('planned', 'sent', 'settled')),
    sends          INTEGER NOT NULL DEFAULT 0,      -- requests that may have left
    outcome        TEXT,
    withheld       INTEGER NOT NULL DEFAULT 0 CHECK (withheld IN (0, 1)),
    duration_ms    INTEGER,
    created_at     INTEGER NOT NULL,
    UNIQUE (job_seq, turn, position),
    CHECK ((state = 'settled') = (outcome IS NOT NULL))
);
CREATE INDEX tool_calls_engagement ON tool_calls (engagement_seq, turn, seq);

CREATE TABLE reviews (
    seq            INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    engagement_seq INTEGER NOT NULL,
    job_seq        INTEGER NOT NULL,
    turn           INTEGER NOT NULL,
    call_id        TEXT    NOT NULL,
    kind           TEXT    NOT NULL CHECK (kind IN ('input', 'output', 'unknown_outcome')),
    reviewer       TEXT    NOT NULL,
    question       TEXT    NOT NULL,
    arguments_hash TEXT    NOT NULL,
    state          TEXT    NOT NULL CHECK (state IN ('open', 'approved', 'rejected', 'expired')),
    decided_by     TEXT,
    reason         TEXT,
    created_at     INTEGER NOT NULL,
    deadline_at    INTEGER,
    decided_at     INTEGER,
    CHECK ((state = 'open') = (decided_at IS NULL))
);
CREATE INDEX reviews_open ON reviews (seq) WHERE state = 'open';
CREATE INDEX reviews_job  ON reviews (job_seq, turn);

-- Append-only. A stream is an engagement's, or a plain job's; it is named by the seq of its first job.
CREATE TABLE events (
    stream  INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    job_seq INTEGER NOT NULL,
    name    TEXT    NOT NULL,
    turn    INTEGER NOT NULL,
    data    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (stream, seq)
) WITHOUT ROWID;
