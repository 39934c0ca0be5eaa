-- Pauses ($2 = 1) or resumes ($2 = 0) a job. Apart from update_jobs.sql, because a row that a worker's process knows may be
-- older than this.
UPDATE jobs SET held = $2 WHERE seq = $1
