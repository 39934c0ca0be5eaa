-- What an engagement has used and cost, by job and phase.
SELECT j.id AS job_id, c.phase, count(*) AS runs, CAST(sum(c.duration_ms) AS BIGINT) AS duration_ms,
       CAST(sum(c.tokens_in) AS BIGINT) AS tokens_in, CAST(sum(c.tokens_cached) AS BIGINT) AS tokens_cached,
       CAST(sum(c.tokens_out) AS BIGINT) AS tokens_out, CAST(sum(c.cost) AS BIGINT) AS cost
FROM engagements AS e
JOIN jobs AS j ON j.engagement_seq = e.seq
JOIN checkpoints AS c ON c.job_seq = j.seq
WHERE e.id = $1
GROUP BY j.seq, j.id, c.phase
ORDER BY j.seq, c.phase
