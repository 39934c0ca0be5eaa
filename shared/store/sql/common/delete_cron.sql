-- Deletes the cron entry $2 of tenant $1.
DELETE FROM crons WHERE tenant = $1 AND name = $2
