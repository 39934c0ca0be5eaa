-- Gives back what a claim took, by the tokens of the leases (LIKE patterns in $1, separated by blanks), at $2, in the commit $3. Rows are not read
-- on the way: it is for those that cannot be, and for a claim whose answer was lost.
WITH held AS (
    SELECT j.seq, j.worker_id
    FROM jobs AS j
    WHERE j.state = 'active' AND j.reserved = 0 AND j.lease_token LIKE ANY (string_to_array($1, ' '))
    FOR UPDATE
),
given AS (
    UPDATE jobs AS j
    SET state            = 'available',
        worker_id        = NULL,
        lease_token      = NULL,
        lease_expires_at = NULL,
        events           = CASE WHEN j.engagement_seq IS NULL THEN j.events + 1 ELSE 0 END
    FROM held AS h
    WHERE j.seq = h.seq
    RETURNING j.*, h.worker_id AS worker
),
told AS (
    -- The event of the start of an agent's job is not written yet. In the order in which totals are locked.
    UPDATE totals AS c
    SET events = c.events + 2
    FROM (SELECT g.engagement_seq FROM given AS g WHERE g.engagement_seq IS NOT NULL ORDER BY g.engagement_seq DESC) AS g
    WHERE c.seq = g.engagement_seq
    RETURNING c.seq, c.events
),
yielded AS (
    -- The body is what engine/journal makes of these events.
    INSERT INTO journal (commit_id, stream, last_event, events, job_seq, turn, names, at, body)
    SELECT $3, g.stream, g.events, 1, g.seq, 0, 'job.yielded', $2, '[{"event":{"data":{"reason":"not started"}}}]'
    FROM given AS g
    WHERE g.engagement_seq IS NULL
    UNION ALL
    SELECT $3, g.stream, c.events, 2, g.seq, coalesce((g.position::jsonb ->> 'turn')::bigint, 0), 'job.started,job.yielded', $2,
           '[{"event":{"data":' || json_build_object('attempt', g.attempt, 'worker_id', g.worker)::text || ',"at":' || g.claimed_at
           || '}},{"event":{"data":{"reason":"not started"}}}]'
    FROM given AS g
    JOIN told AS c ON c.seq = g.engagement_seq
    RETURNING 1
)
SELECT count(*) AS jobs FROM given
