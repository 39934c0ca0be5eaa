-- The checkpoints of a job in the turns from $2 up to, but not including, $3.
SELECT c.job_seq, c.turn, c.phase, c.version, c.body, c.duration_ms, c.tokens_in, c.tokens_out, c.at, c.tokens_cached, c.cost, c.model
FROM checkpoints AS c
WHERE c.job_seq = $1 AND c.turn >= $2 AND c.turn < $3
ORDER BY c.turn, c.phase
