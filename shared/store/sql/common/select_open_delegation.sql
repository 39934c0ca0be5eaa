-- The job that works on call $2 of job $1 now.
SELECT d.job_seq
FROM delegations AS d
WHERE d.parent_seq = $1 AND d.call_id = $2 AND d.state = 'open'
