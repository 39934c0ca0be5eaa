-- Checkpoints. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO checkpoints (job_seq, turn, phase, version, body, duration_ms, tokens_in, tokens_out, at, tokens_cached, cost, model)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6,
       r.value ->> 7, r.value ->> 8, r.value ->> 9, r.value ->> 10, r.value ->> 11
FROM json_each($1) AS r
