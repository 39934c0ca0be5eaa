-- Forgets the occurrences of the cron entry $2 of tenant $1, but for the latest $3.
DELETE FROM cron_runs
WHERE tenant = $1 AND name = $2
  AND id NOT IN (SELECT r.id FROM cron_runs AS r WHERE r.tenant = $1 AND r.name = $2
                 ORDER BY r.scheduled_at DESC, r.id DESC LIMIT $3)
