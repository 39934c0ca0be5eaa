-- Failed attempts of jobs, oldest first.
SELECT t.job_seq, t.attempt, t.error, t.at
FROM job_errors AS t
WHERE t.job_seq {in: seqs}
ORDER BY t.job_seq, t.failure
