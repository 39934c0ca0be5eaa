-- A breaker counts a share of the last calls, and its rules read the whole state at once. Jobs that it refused wait for it.
DROP TABLE breakers;
CREATE TABLE breakers (
    name       TEXT PRIMARY KEY,                       -- JSON: ["tool", agent, tool] or ["model", provider, model]
    state      TEXT NOT NULL DEFAULT '{}',             -- JSON: the last calls, and the trial calls
    failures   BIGINT NOT NULL DEFAULT 0 CHECK (failures >= 0),
    open_until BIGINT,                                 -- half-open after that time
    release_at BIGINT,                                 -- when waiting jobs may be released
    changed_at BIGINT NOT NULL
);
CREATE INDEX breakers_release ON breakers (release_at) WHERE release_at IS NOT NULL;

-- Jobs whose last attempt a breaker refused. A row counts only while its job has not been claimed since.
CREATE TABLE breaker_waits (
    job_seq BIGINT PRIMARY KEY,
    breaker TEXT NOT NULL,
    attempt BIGINT NOT NULL
);
CREATE INDEX breaker_waits_breaker ON breaker_waits (breaker, job_seq);
