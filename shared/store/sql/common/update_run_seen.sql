-- Notes that request $1 was polled up to number $3, when it was at $2 before.
UPDATE run_requests SET seen = $3
WHERE job_seq = (SELECT j.seq FROM jobs AS j WHERE j.id = $1) AND seen = $2
