-- Failed attempts, numbered within their job; one per job at most.
-- Differs from SQLite: an array per column.
INSERT INTO job_errors (job_seq, failure, attempt, error, at)
SELECT r.job_seq, 1 + (SELECT count(*) FROM job_errors AS e WHERE e.job_seq = r.job_seq), r.attempt, r.error, r.at
FROM unnest($1, $2, $3, $4) AS r (job_seq, attempt, error, at)
