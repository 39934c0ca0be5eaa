-- The fleet: a leader among schedulers, workers that report themselves, statistics, rate limits, retention.

-- When the current attempt began: what a timeout counts from.
ALTER TABLE jobs ADD COLUMN claimed_at INTEGER;
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX jobs_timed ON jobs (seq) WHERE state = 'active' AND timeout_ms IS NOT NULL;
CREATE INDEX engagements_budget ON engagements (budget_seq);

-- Who leads, until when. One row per kind of leadership.
CREATE TABLE leaders (
    name       TEXT PRIMARY KEY,
    holder     TEXT    NOT NULL,
    token      TEXT    NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE workers (
    name       TEXT PRIMARY KEY,
    instance   TEXT    NOT NULL,
    host       TEXT    NOT NULL,
    pid        INTEGER NOT NULL,
    version    TEXT    NOT NULL,
    queues     TEXT    NOT NULL,                    -- JSON: list of names
    slots      INTEGER NOT NULL,
    busy       INTEGER NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('running', 'draining')),
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL
) WITHOUT ROWID;

-- Ended jobs per hour. The row of an hour grows until all of its jobs are counted.
CREATE TABLE statistics (
    hour    INTEGER NOT NULL,
    queue   TEXT    NOT NULL,
    state   TEXT    NOT NULL CHECK (state IN ('completed', 'cancelled', 'discarded')),
    jobs    INTEGER NOT NULL,
    tokens  INTEGER NOT NULL,
    took_ms INTEGER NOT NULL,
    PRIMARY KEY (hour, queue, state)
) WITHOUT ROWID;

-- How far the statistics have come: jobs that ended before this are counted.
CREATE TABLE statistics_mark (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    ended_at INTEGER NOT NULL
);
INSERT INTO statistics_mark (one, ended_at) VALUES (1, 0);

-- The last transaction of each writer that was committed: what a writer looks up whose connection broke during a
-- commit. PostgreSQL alone has such writers.
CREATE TABLE writers (
    name        TEXT PRIMARY KEY,
    last_commit TEXT NOT NULL                       -- UUIDv7, so old ones can be told
) WITHOUT ROWID;

-- Buckets of requests and tokens that all workers share: what is left, in sixty-thousandths, as of when.
CREATE TABLE rate_limits (
    name       TEXT PRIMARY KEY,
    requests   INTEGER NOT NULL,
    tokens     INTEGER NOT NULL,
    as_of      INTEGER NOT NULL,
    held_until INTEGER NOT NULL DEFAULT 0           -- what the provider asked for
) WITHOUT ROWID;

-- The queues that everybody knows.
INSERT INTO queues (name) VALUES ('default'), ('ai-agents') ON CONFLICT (name) DO NOTHING;
