-- The checkpoints of unfinished turns. $1: job seqs, $2: turns. Differs from SQLite: arrays.
SELECT c.job_seq, c.turn, c.phase, c.version, c.body, c.duration_ms, c.tokens_in, c.tokens_out, c.at, c.tokens_cached, c.cost, c.model
FROM unnest($1, $2) AS r (job_seq, turn)
JOIN checkpoints AS c ON c.job_seq = r.job_seq AND c.turn = r.turn
ORDER BY c.job_seq, c.phase
