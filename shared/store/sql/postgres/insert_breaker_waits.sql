-- Inserts the jobs that wait for a breaker. Differs from SQLite: an array per column.
INSERT INTO breaker_waits (job_seq, breaker, attempt)
SELECT * FROM unnest($1, $2, $3)
ON CONFLICT (job_seq) DO UPDATE SET breaker = excluded.breaker, attempt = excluded.attempt
