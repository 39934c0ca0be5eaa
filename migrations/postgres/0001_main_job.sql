-- The main job: jobs, engagements, turns, tools, budgets, reviews, events, agents.
--
-- The same tables and columns as migrations/sqlite/0001_main_job.sql. What differs:
-- * `jobs_seq` numbers jobs, because many processes enqueue at once; an engagement and its budget take the number of
--   their first job.
-- * Rows that change often leave room on their page (fillfactor), so that an update stays there and touches no index.
-- * History is partitioned by ranges of these numbers, so that old history is dropped and not deleted.

CREATE SEQUENCE jobs_seq AS BIGINT;

CREATE TABLE jobs (
    seq              BIGINT PRIMARY KEY,
    id               TEXT   NOT NULL UNIQUE,
    job_type         TEXT   NOT NULL,
    kind             TEXT   NOT NULL CHECK (kind IN ('agent', 'plain')),
    queue            TEXT   NOT NULL,
    state            TEXT   NOT NULL CHECK (state IN ('scheduled', 'available', 'pending', 'active',
                                                      'completed', 'retryable', 'cancelled', 'discarded')),
    priority         BIGINT NOT NULL CHECK (priority BETWEEN -100 AND 100),
    attempt          BIGINT NOT NULL DEFAULT 0,
    failures         BIGINT NOT NULL DEFAULT 0,
    lapses           BIGINT NOT NULL DEFAULT 0,
    created_at       BIGINT NOT NULL,
    run_at           BIGINT NOT NULL,
    started_at       BIGINT,
    ended_at         BIGINT,
    expires_at       BIGINT,
    timeout_ms       BIGINT,
    engagement_seq   BIGINT,
    stream           BIGINT NOT NULL,
    position         TEXT,
    reserved         BIGINT NOT NULL DEFAULT 0,
    tokens_used      BIGINT NOT NULL DEFAULT 0,
    events           BIGINT NOT NULL DEFAULT 0,
    worker_id        TEXT,
    lease_token      TEXT,
    lease_expires_at BIGINT,
    retry_delay_ms   BIGINT,
    CHECK (attempt >= 0 AND failures >= 0 AND reserved >= 0 AND tokens_used >= 0),
    CHECK ((kind = 'agent') = (engagement_seq IS NOT NULL)),
    CHECK ((state = 'active') = (lease_token IS NOT NULL)),
    CHECK ((state = 'active') = (lease_expires_at IS NOT NULL)),
    CHECK ((state IN ('completed', 'cancelled', 'discarded')) = (ended_at IS NOT NULL)),
    CHECK (state = 'active' OR reserved = 0)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX jobs_available ON jobs (kind, queue, priority DESC, seq) WHERE state = 'available';
CREATE INDEX jobs_waiting   ON jobs (run_at) WHERE state IN ('scheduled', 'retryable');
CREATE INDEX jobs_active    ON jobs (seq) WHERE state = 'active';
CREATE INDEX jobs_expiring  ON jobs (expires_at) WHERE expires_at IS NOT NULL AND ended_at IS NULL;
CREATE INDEX jobs_engagement ON jobs (engagement_seq) WHERE engagement_seq IS NOT NULL;

CREATE TABLE job_envelopes (
    job_seq BIGINT PRIMARY KEY,
    retry   TEXT NOT NULL,
    args    TEXT NOT NULL,
    meta    TEXT NOT NULL,
    options TEXT NOT NULL,
    extra   TEXT NOT NULL
) PARTITION BY RANGE (job_seq);

CREATE TABLE job_results (
    job_seq BIGINT PRIMARY KEY,
    result  TEXT NOT NULL
) PARTITION BY RANGE (job_seq);

CREATE TABLE job_errors (
    job_seq BIGINT NOT NULL,
    failure BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    error   TEXT   NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (job_seq, failure)
) PARTITION BY RANGE (job_seq);

CREATE TABLE queues (
    name TEXT PRIMARY KEY
);

CREATE TABLE agent_definitions (
    digest     TEXT PRIMARY KEY,
    definition TEXT NOT NULL
);

CREATE TABLE agents (
    name       TEXT PRIMARY KEY,
    digest     TEXT   NOT NULL,
    source     TEXT   NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE engagements (
    seq        BIGINT PRIMARY KEY,
    id         TEXT   NOT NULL UNIQUE,
    agent_name TEXT   NOT NULL,
    digest     TEXT   NOT NULL,
    user_id    TEXT   NOT NULL,
    user_email TEXT,
    started_at BIGINT NOT NULL,
    budget_seq BIGINT NOT NULL,
    turns      BIGINT NOT NULL DEFAULT 0,
    events     BIGINT NOT NULL DEFAULT 0,
    messages   BIGINT NOT NULL DEFAULT 0
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE budgets (
    seq         BIGINT PRIMARY KEY,
    token_limit BIGINT,
    settled     BIGINT NOT NULL DEFAULT 0,
    reserved    BIGINT NOT NULL DEFAULT 0,
    CHECK (settled >= 0 AND reserved >= 0),
    CHECK (token_limit IS NULL OR settled + reserved <= token_limit)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE checkpoints (
    job_seq     BIGINT NOT NULL,
    turn        BIGINT NOT NULL,
    phase       BIGINT NOT NULL CHECK (phase BETWEEN 0 AND 6),
    version     BIGINT NOT NULL,
    body        TEXT   NOT NULL,
    duration_ms BIGINT NOT NULL,
    tokens_in   BIGINT NOT NULL,
    tokens_out  BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    PRIMARY KEY (job_seq, turn, phase)
) PARTITION BY RANGE (job_seq);

CREATE TABLE messages (
    engagement_seq BIGINT NOT NULL,
    seq            BIGINT NOT NULL,
    job_seq        BIGINT NOT NULL,
    turn           BIGINT NOT NULL,
    message        TEXT   NOT NULL,
    created_at     BIGINT NOT NULL,
    PRIMARY KEY (engagement_seq, seq)
) PARTITION BY RANGE (engagement_seq);

CREATE TABLE tool_calls (
    seq            BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    call_id        TEXT   NOT NULL UNIQUE,
    job_seq        BIGINT NOT NULL,
    engagement_seq BIGINT NOT NULL,
    turn           BIGINT NOT NULL,
    position       BIGINT NOT NULL,
    name           TEXT   NOT NULL,
    input          TEXT   NOT NULL,
    idempotent     BIGINT NOT NULL CHECK (idempotent IN (0, 1)),
    state          TEXT   NOT NULL CHECK (state IN ('planned', 'sent', 'settled')),
    sends          BIGINT NOT NULL DEFAULT 0,
    outcome        TEXT,
    withheld       BIGINT NOT NULL DEFAULT 0 CHECK (withheld IN (0, 1)),
    duration_ms    BIGINT,
    created_at     BIGINT NOT NULL,
    UNIQUE (job_seq, turn, position),
    CHECK ((state = 'settled') = (outcome IS NOT NULL))
);
CREATE INDEX tool_calls_engagement ON tool_calls (engagement_seq, turn, seq);

CREATE TABLE reviews (
    seq            BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    id             TEXT   NOT NULL UNIQUE,
    engagement_seq BIGINT NOT NULL,
    job_seq        BIGINT NOT NULL,
    turn           BIGINT NOT NULL,
    call_id        TEXT   NOT NULL,
    kind           TEXT   NOT NULL CHECK (kind IN ('input', 'output', 'unknown_outcome')),
    reviewer       TEXT   NOT NULL,
    question       TEXT   NOT NULL,
    arguments_hash TEXT   NOT NULL,
    state          TEXT   NOT NULL CHECK (state IN ('open', 'approved', 'rejected', 'expired')),
    decided_by     TEXT,
    reason         TEXT,
    created_at     BIGINT NOT NULL,
    deadline_at    BIGINT,
    decided_at     BIGINT,
    CHECK ((state = 'open') = (decided_at IS NULL))
);
CREATE INDEX reviews_open ON reviews (seq) WHERE state = 'open';
CREATE INDEX reviews_job  ON reviews (job_seq, turn);

CREATE TABLE events (
    stream  BIGINT NOT NULL,
    seq     BIGINT NOT NULL,
    job_seq BIGINT NOT NULL,
    name    TEXT   NOT NULL,
    turn    BIGINT NOT NULL,
    data    TEXT   NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (stream, seq)
) PARTITION BY RANGE (stream);

-- The tables whose rows are history: written once, read rarely, dropped by age. Each has a partition per million
-- jobs, and a default one that takes what no partition was made for in time.
CREATE FUNCTION turnstone_history_tables() RETURNS SETOF TEXT LANGUAGE sql IMMUTABLE AS $$
    SELECT unnest(ARRAY['job_envelopes', 'job_results', 'job_errors', 'checkpoints', 'messages', 'events'])
$$;

-- Makes the partitions of the million that begins at `first`, where they are missing; returns how many it made. A table
-- whose default partition has rows of that range already is left out, and one that is in somebody's hands stops it
-- until the next time. Attaching does not stop those who write to other partitions, as CREATE … PARTITION OF would.
CREATE FUNCTION turnstone_add_history(first BIGINT) RETURNS BIGINT LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
DECLARE
    parent TEXT;
    part   TEXT;
    key    TEXT;
    late   BOOLEAN;
    made   BIGINT := 0;
BEGIN
    FOR parent IN SELECT turnstone_history_tables() LOOP
        part := parent || '_' || first;
        CONTINUE WHEN to_regclass(part) IS NOT NULL;
        key := substring(pg_get_partkeydef(parent::regclass) FROM '\((.*)\)');
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I WHERE %s >= %s AND %s < %s)',
                       parent || '_rest', key, first, key, first + 1000000) INTO late;
        CONTINUE WHEN late;
        BEGIN
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', part, parent);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
                           parent, part, first, first + 1000000);
            made := made + 1;
        EXCEPTION
            WHEN check_violation THEN NULL;
            WHEN lock_not_available THEN EXIT;
        END;
    END LOOP;
    RETURN made;
END
$$;

CREATE TABLE job_envelopes_rest PARTITION OF job_envelopes DEFAULT;
CREATE TABLE job_results_rest   PARTITION OF job_results DEFAULT;
CREATE TABLE job_errors_rest    PARTITION OF job_errors DEFAULT;
CREATE TABLE checkpoints_rest   PARTITION OF checkpoints DEFAULT;
CREATE TABLE messages_rest      PARTITION OF messages DEFAULT;
CREATE TABLE events_rest        PARTITION OF events DEFAULT;
SELECT turnstone_add_history(0), turnstone_add_history(1000000);
