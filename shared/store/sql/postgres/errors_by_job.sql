-- Failed attempts of jobs, oldest first. $1: seqs. Differs from SQLite: an array.
SELECT t.job_seq, t.attempt, t.error, t.at
FROM job_errors AS t
WHERE t.job_seq = ANY($1)
ORDER BY t.job_seq, t.failure
