-- Checkpoints of one phase of an engagement, newest first: its own and those that it reads of others.
SELECT j.id AS job_id, c.job_seq, c.turn AS turn, c.phase AS phase, c.version, c.body, c.duration_ms, c.tokens_in, c.tokens_out, c.at, c.tokens_cached, c.cost, c.model
FROM engagements AS e
JOIN jobs AS j ON j.engagement_seq = e.seq
JOIN checkpoints AS c ON c.job_seq = j.seq
WHERE e.id = $1 AND c.phase = $2
UNION ALL
SELECT j.id AS job_id, c.job_seq, c.turn AS turn, c.phase AS phase, c.version, c.body, c.duration_ms, c.tokens_in, c.tokens_out, c.at, c.tokens_cached, c.cost, c.model
FROM engagements AS e
JOIN inheritances AS i ON i.engagement_seq = e.seq
JOIN jobs AS j ON j.seq = i.source_seq
JOIN checkpoints AS c ON c.job_seq = j.seq AND c.turn < i.turn_until
WHERE e.id = $1 AND c.phase = $2
ORDER BY turn DESC
LIMIT $3
