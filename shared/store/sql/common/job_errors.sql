-- A job's failed attempts, oldest first.
SELECT attempt, error, at FROM job_errors WHERE job_seq = $1 ORDER BY failure
