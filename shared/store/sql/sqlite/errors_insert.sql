-- Failed attempts, numbered within their job. $1: JSON [[job_seq, attempt, error, at], …], one per job at most.
-- Differs from PostgreSQL: json_each.
INSERT INTO job_errors (job_seq, failure, attempt, error, at)
SELECT r.value ->> 0,
       1 + (SELECT count(*) FROM job_errors AS e WHERE e.job_seq = r.value ->> 0),
       r.value ->> 1, r.value ->> 2, r.value ->> 3
FROM json_each($1) AS r
