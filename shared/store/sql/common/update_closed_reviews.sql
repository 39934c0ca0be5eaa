-- Closes the open reviews of a job that has ended without them.
UPDATE reviews
SET state = 'expired', decided_at = $2
WHERE job_seq = $1 AND state = 'open'
