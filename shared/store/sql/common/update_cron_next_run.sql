-- Moves the cron entry $2 of tenant $1 from the occurrence $3 to $4, unless somebody else has.
UPDATE crons SET next_run_at = $4 WHERE tenant = $1 AND name = $2 AND next_run_at = $3
