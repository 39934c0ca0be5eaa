-- The checkpoints of a job in the turns from $2 up to, but not including, $3: its own and those that it reads of others.
SELECT c.job_seq, c.turn AS turn, c.phase AS phase, c.version, c.body, c.duration_ms, c.tokens_in, c.tokens_out, c.at, c.tokens_cached, c.cost, c.model
FROM checkpoints AS c
WHERE c.job_seq = $1 AND c.turn >= $2 AND c.turn < $3
UNION ALL
SELECT c.job_seq, c.turn AS turn, c.phase AS phase, c.version, c.body, c.duration_ms, c.tokens_in, c.tokens_out, c.at, c.tokens_cached, c.cost, c.model
FROM inheritances AS i
JOIN checkpoints AS c ON c.job_seq = i.source_seq AND c.turn < i.turn_until
WHERE i.engagement_seq = $1 AND c.turn >= $2 AND c.turn < $3
ORDER BY turn, phase
