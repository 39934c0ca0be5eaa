UPDATE jobs
--- update_job_held
-- Pauses ($2 = 1) or resumes ($2 = 0) a job. Apart from update_jobs.sql, because a row that a worker's process knows
-- may be older than this.
SET held = $2 WHERE seq = $1
--- update_job_calls_again
-- Tells the worker that holds the job's lease that a call is to be made again.
SET calls_again = calls_again + 1 WHERE seq = $1
--- update_revived_job
-- What a job that is tried again after its end may be given anew. $1 seq. It is not held back either.
SET queue = $2, priority = $3, timeout_ms = $4, expires_at = $5, held = 0 WHERE seq = $1
--- update_jobs_on_limit
-- What jobs want when their limit is used up.
SET on_limit = r.on_limit FROM {rows: id, on_limit} WHERE jobs.id = r.id
--- update_jobs_set_aside
-- Sets jobs aside whose limit is used up.
SET set_aside = 1 FROM {rows: seq} WHERE jobs.seq = r.seq
