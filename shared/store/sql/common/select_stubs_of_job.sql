-- The calls that stand for calls of a job already.
SELECT s.of_call
FROM stubs AS s
JOIN jobs AS j ON j.seq = s.job_seq
WHERE j.id = $1
