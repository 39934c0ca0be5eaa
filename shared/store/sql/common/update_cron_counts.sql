-- Counts $3 jobs that the cron entry $2 of tenant $1 made, the last one $4 at $5; $6 says why the latest made none.
UPDATE crons
SET runs        = runs + $3,
    last_job_id = COALESCE($4, last_job_id),
    last_run_at = CASE WHEN $3 > 0 THEN $5 ELSE last_run_at END,
    last_error  = $6
WHERE tenant = $1 AND name = $2
