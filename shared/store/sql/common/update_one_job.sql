UPDATE jobs
--- update_job_held
-- Pauses ($2 = 1) or resumes ($2 = 0) a job. Apart from update_jobs.sql, because a row that a worker's process knows
-- may be older than this.
SET held = $2 WHERE seq = $1
--- update_job_calls_again
-- Asks the worker that holds the job's lease to make a call again.
SET calls_again = calls_again + 1 WHERE seq = $1
--- update_revived_job
-- The new settings of a job that is tried again after its end. $1 seq. The job is not paused.
SET queue = $2, priority = $3, timeout_ms = $4, expires_at = $5, held = 0 WHERE seq = $1
--- update_jobs_on_limit
-- The reactions of jobs to a used-up limit.
SET on_limit = r.on_limit FROM {rows: id, on_limit} WHERE jobs.id = r.id
--- update_jobs_set_aside
-- Sets jobs aside whose limit is used up.
SET set_aside = 1 FROM {rows: seq} WHERE jobs.seq = r.seq
