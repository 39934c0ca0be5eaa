-- Inserts the jobs that wait for a breaker.
INSERT INTO breaker_waits {values: job_seq, breaker, attempt}
ON CONFLICT (job_seq) DO UPDATE SET breaker = excluded.breaker, attempt = excluded.attempt
