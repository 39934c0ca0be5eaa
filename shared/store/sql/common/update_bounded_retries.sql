-- Ends the pauses before retries that began after $2 as if they began at $1: they were written before the clock stepped back. At
-- most $3.
UPDATE jobs
SET run_at = $1 + retry_delay_ms
WHERE seq IN (SELECT j.seq FROM jobs AS j
              WHERE j.state = 'retryable' AND j.run_at - j.retry_delay_ms > $2
              ORDER BY j.seq LIMIT $3 {lock skip})
