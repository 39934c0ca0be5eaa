-- Errors and what is done about them: tries of tool calls, escalations, circuit breakers.

ALTER TABLE tool_calls ADD COLUMN retries INTEGER NOT NULL DEFAULT 0 CHECK (retries >= 0);       -- tries beyond the first
ALTER TABLE tool_calls ADD COLUMN tried TEXT;           -- the tries that failed before the last: JSON objects without any content, joined by commas
ALTER TABLE tool_calls ADD COLUMN handled TEXT;         -- JSON: what a handler made of the failure
ALTER TABLE tool_calls ADD COLUMN started_at INTEGER;   -- when its first request may have left
ALTER TABLE tool_calls ADD COLUMN completed_at INTEGER; -- when its outcome was known

-- A CHECK of SQLite cannot be changed, so the table is made anew.
CREATE TABLE reviews_anew (
    seq            INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    engagement_seq INTEGER NOT NULL,
    job_seq        INTEGER NOT NULL,
    turn           INTEGER NOT NULL,
    call_id        TEXT    NOT NULL,                    -- empty: it is about no call
    kind           TEXT    NOT NULL CHECK (kind IN ('input', 'output', 'unknown_outcome', 'escalation', 'confirmation')),
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
INSERT INTO reviews_anew (seq, id, engagement_seq, job_seq, turn, call_id, kind, reviewer, question, arguments_hash, state,
                          decided_by, reason, created_at, deadline_at, decided_at)
SELECT seq, id, engagement_seq, job_seq, turn, call_id, kind, reviewer, question, arguments_hash, state, decided_by, reason,
       created_at, deadline_at, decided_at
FROM reviews;
DROP TABLE reviews;
ALTER TABLE reviews_anew RENAME TO reviews;
CREATE INDEX reviews_open ON reviews (seq) WHERE state = 'open';
CREATE INDEX reviews_job  ON reviews (job_seq, turn);
CREATE INDEX reviews_engagement ON reviews (engagement_seq);

-- What has failed lately; what is well has no row. Closed while open_until is NULL, open until then, half-open after it.
CREATE TABLE breakers (
    name       TEXT PRIMARY KEY,                        -- JSON: ["tool", agent, tool] or ["model", provider, model]
    failures   INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),     -- in a row
    open_until INTEGER,
    probes     INTEGER NOT NULL DEFAULT 0 CHECK (probes >= 0),       -- let through since it is half-open
    probed_at  INTEGER NOT NULL DEFAULT 0,
    successes  INTEGER NOT NULL DEFAULT 0 CHECK (successes >= 0),    -- of those
    failed_at  INTEGER NOT NULL
) WITHOUT ROWID;
