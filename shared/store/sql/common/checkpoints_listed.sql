-- Checkpoints of an engagement, oldest first.
SELECT j.id AS job_id, c.job_seq, c.turn, c.phase, c.version, c.body, c.duration_ms, c.tokens_in, c.tokens_out, c.at, c.tokens_cached, c.cost, c.model
FROM engagements AS e
JOIN jobs AS j ON j.engagement_seq = e.seq
JOIN checkpoints AS c ON c.job_seq = j.seq
WHERE e.id = $1
ORDER BY c.turn, c.phase
LIMIT $2 OFFSET $3
