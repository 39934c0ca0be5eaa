-- Failed attempts, numbered within their job; one per job at most.
INSERT INTO job_errors (job_seq, failure, attempt, error, at, code)
SELECT r.job_seq, 1 + (SELECT count(*) FROM job_errors AS e WHERE e.job_seq = r.job_seq), r.attempt, r.error, r.at,
       r.code
FROM {rows: job_seq, attempt, error, at, code}
