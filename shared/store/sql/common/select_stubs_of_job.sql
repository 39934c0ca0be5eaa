-- The recorded calls that have replaced calls of a job.
SELECT s.of_call
FROM stubs AS s
JOIN jobs AS j ON j.seq = s.job_seq
WHERE j.id = $1
