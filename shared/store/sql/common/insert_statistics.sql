-- Counts the jobs that ended from $1 until before $2; those whose state is damaged do not count.
INSERT INTO statistics (hour, queue, state, jobs, tokens, took_ms)
SELECT j.ended_at / 3600000 * 3600000, j.queue, j.state, count(*), CAST(sum(j.tokens_used) AS BIGINT),
       CAST(sum(j.ended_at - j.created_at) AS BIGINT)
FROM jobs AS j
WHERE j.ended_at >= $1 AND j.ended_at < $2 AND j.state IN ('completed', 'cancelled', 'discarded')
GROUP BY 1, 2, 3
ON CONFLICT (hour, queue, state) DO UPDATE
SET jobs = statistics.jobs + excluded.jobs, tokens = statistics.tokens + excluded.tokens,
    took_ms = statistics.took_ms + excluded.took_ms
