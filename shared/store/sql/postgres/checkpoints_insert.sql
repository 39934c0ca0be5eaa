-- Checkpoints. Differs from SQLite: an array per column.
INSERT INTO checkpoints (job_seq, turn, phase, version, body, duration_ms, tokens_in, tokens_out, at, tokens_cached, cost, model)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
