-- The same as migrations/sqlite/0002_fleet.sql in PostgreSQL's words, and how old history is dropped.
--
-- The fleet: a leader among schedulers, workers that report themselves, statistics, rate limits, retention.

-- When the current attempt began: what a timeout counts from.
ALTER TABLE jobs ADD COLUMN claimed_at BIGINT;
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX jobs_timed ON jobs (seq) WHERE state = 'active' AND timeout_ms IS NOT NULL;
CREATE INDEX engagements_budget ON engagements (budget_seq);

-- Who leads, until when. One row per kind of leadership.
CREATE TABLE leaders (
    name       TEXT PRIMARY KEY,
    holder     TEXT    NOT NULL,
    token      TEXT    NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE TABLE workers (
    name       TEXT PRIMARY KEY,
    instance   TEXT    NOT NULL,
    host       TEXT    NOT NULL,
    pid        BIGINT NOT NULL,
    version    TEXT    NOT NULL,
    queues     TEXT    NOT NULL,                    -- JSON: list of names
    slots      BIGINT NOT NULL,
    busy       BIGINT NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('running', 'draining')),
    started_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL
);

-- Ended jobs per hour. The row of an hour grows until all of its jobs are counted.
CREATE TABLE statistics (
    hour    BIGINT NOT NULL,
    queue   TEXT    NOT NULL,
    state   TEXT    NOT NULL CHECK (state IN ('completed', 'cancelled', 'discarded')),
    jobs    BIGINT NOT NULL,
    tokens  BIGINT NOT NULL,
    took_ms BIGINT NOT NULL,
    PRIMARY KEY (hour, queue, state)
);

-- How far the statistics have come: jobs that ended before this are counted.
CREATE TABLE statistics_mark (
    one      BIGINT PRIMARY KEY CHECK (one = 1),
    ended_at BIGINT NOT NULL
);
INSERT INTO statistics_mark (one, ended_at) VALUES (1, 0);

-- The last transaction of each writer that was committed: what a writer looks up whose connection broke during a
-- commit. PostgreSQL alone has such writers.
CREATE TABLE writers (
    name        TEXT PRIMARY KEY,
    last_commit TEXT NOT NULL                       -- UUIDv7, so old ones can be told
) WITH (fillfactor = 10);

-- Buckets of requests and tokens that all workers share: what is left, in sixty-thousandths, as of when.
CREATE TABLE rate_limits (
    name       TEXT PRIMARY KEY,
    requests   BIGINT NOT NULL,
    tokens     BIGINT NOT NULL,
    as_of      BIGINT NOT NULL,
    held_until BIGINT NOT NULL DEFAULT 0           -- what the provider asked for
);

-- The queues that everybody knows.
INSERT INTO queues (name) VALUES ('default'), ('ai-agents') ON CONFLICT (name) DO NOTHING;

-- Drops the history of every million of jobs that have all ended before `ended`, with the engagements that they are
-- part of, but never that of the newest million; returns how many partitions it dropped. One that is in somebody's hands
-- stops it until the next time.
CREATE FUNCTION turnstone_drop_history(ended BIGINT) RETURNS BIGINT LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
DECLARE
    newest BIGINT := (SELECT last_value / 1000000 * 1000000 FROM jobs_seq);
    begins BIGINT;
    parent TEXT;
    gone   BIGINT := 0;
BEGIN
    FOR begins IN
        SELECT DISTINCT substring(c.relname FROM '[0-9]+$')::BIGINT AS first
        FROM pg_inherits AS i
        JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent IN (SELECT t::regclass FROM turnstone_history_tables() AS t) AND c.relname ~ '_[0-9]+$'
        ORDER BY first
    LOOP
        EXIT WHEN begins >= newest;
        CONTINUE WHEN EXISTS (SELECT 1 FROM jobs AS j
                              WHERE j.seq >= begins AND j.seq < begins + 1000000
                                AND (j.ended_at IS NULL OR j.ended_at >= ended));
        CONTINUE WHEN EXISTS (SELECT 1 FROM jobs AS j
                              WHERE j.engagement_seq >= begins AND j.engagement_seq < begins + 1000000
                                AND (j.ended_at IS NULL OR j.ended_at >= ended));
        CONTINUE WHEN EXISTS (SELECT 1 FROM jobs AS j
                              JOIN jobs AS o ON o.engagement_seq = j.engagement_seq
                              WHERE j.seq >= begins AND j.seq < begins + 1000000 AND j.engagement_seq < begins
                                AND (o.ended_at IS NULL OR o.ended_at >= ended));
        FOR parent IN SELECT turnstone_history_tables() LOOP
            CONTINUE WHEN to_regclass(parent || '_' || begins) IS NULL;
            BEGIN
                EXECUTE format('DROP TABLE %I', parent || '_' || begins);
                gone := gone + 1;
            EXCEPTION WHEN lock_not_available THEN
                RETURN gone;
            END;
        END LOOP;
    END LOOP;
    RETURN gone;
END
$$;
