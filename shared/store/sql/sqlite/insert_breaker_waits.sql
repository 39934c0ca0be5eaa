-- Inserts the jobs that wait for a breaker. $1: JSON [[job seq, breaker, attempt], …]. Differs from PostgreSQL: json_each.
INSERT INTO breaker_waits (job_seq, breaker, attempt)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2 FROM json_each($1) AS r WHERE true
ON CONFLICT (job_seq) DO UPDATE SET breaker = excluded.breaker, attempt = excluded.attempt
