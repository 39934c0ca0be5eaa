-- The latest $3 occurrences of the cron entry $2 of tenant $1, newest first.
SELECT r.id, r.scheduled_at, r.at, r.outcome, r.job_id, r.message
FROM cron_runs AS r
WHERE r.tenant = $1 AND r.name = $2
ORDER BY r.scheduled_at DESC, r.id DESC
LIMIT $3
