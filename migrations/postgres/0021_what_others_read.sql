-- History that somebody still reads is not dropped, and what was imported is kept from then on.

-- When an engagement came from another server: retention counts from then.
ALTER TABLE engagements ADD COLUMN imported_at BIGINT;

-- Drops the history of every million of jobs that have all ended before `ended`, with the engagements that they are
-- part of, but never that of the newest million; returns how many partitions it dropped. One that is in somebody's hands
-- stops it until the next time. Kept are what a fork reads, what came from another server since then, what belongs to a
-- workflow that runs, and jobs of queues with a retention of their own: their rows are deleted one by one, and the
-- partition goes when none of them is left.
CREATE OR REPLACE FUNCTION turnstone_drop_history(ended BIGINT) RETURNS BIGINT LANGUAGE plpgsql
SET lock_timeout = '200ms' AS $$
DECLARE
    newest  BIGINT := (SELECT last_value / 1000000 * 1000000 FROM jobs_seq);
    keeping TEXT[] := ARRAY(SELECT q.name FROM queues AS q
                            WHERE coalesce(q.keep_completed_ms, q.keep_discarded_ms, q.keep_cancelled_ms) IS NOT NULL);
    begins  BIGINT;
    parent  TEXT;
    gone    BIGINT := 0;
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
                                AND (j.ended_at IS NULL OR j.ended_at >= ended OR j.queue = ANY(keeping)));
        CONTINUE WHEN EXISTS (SELECT 1 FROM jobs AS j
                              WHERE j.engagement_seq >= begins AND j.engagement_seq < begins + 1000000
                                AND (j.ended_at IS NULL OR j.ended_at >= ended OR j.queue = ANY(keeping)));
        CONTINUE WHEN EXISTS (SELECT 1 FROM jobs AS j
                              JOIN jobs AS o ON o.engagement_seq = j.engagement_seq
                              WHERE j.seq >= begins AND j.seq < begins + 1000000 AND j.engagement_seq < begins
                                AND (o.ended_at IS NULL OR o.ended_at >= ended OR o.queue = ANY(keeping)));
        CONTINUE WHEN EXISTS (SELECT 1 FROM inheritances AS i
                              JOIN jobs AS j ON j.engagement_seq = i.source_seq
                              WHERE (j.seq >= begins AND j.seq < begins + 1000000)
                                 OR (i.source_seq >= begins AND i.source_seq < begins + 1000000));
        CONTINUE WHEN EXISTS (SELECT 1 FROM engagements AS e
                              WHERE e.seq >= begins AND e.seq < begins + 1000000 AND e.imported_at >= ended);
        CONTINUE WHEN EXISTS (SELECT 1 FROM workflows AS w
                              WHERE w.state = 'running'
                                AND (w.seq >= begins AND w.seq < begins + 1000000
                                     OR EXISTS (SELECT 1 FROM jobs AS j
                                                WHERE j.workflow_seq = w.seq
                                                  AND j.seq >= begins AND j.seq < begins + 1000000)));
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
