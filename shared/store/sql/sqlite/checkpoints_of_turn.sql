-- The checkpoints of unfinished turns. $1: JSON [[job_seq, turn], …]. Differs from PostgreSQL: json_each.
SELECT c.job_seq, c.turn, c.phase, c.version, c.body, c.duration_ms, c.tokens_in, c.tokens_out, c.at, c.tokens_cached, c.cost, c.model
FROM json_each($1) AS r
JOIN checkpoints AS c ON c.job_seq = r.value ->> 0 AND c.turn = r.value ->> 1
ORDER BY c.job_seq, c.phase
