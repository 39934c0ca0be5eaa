-- Changes the cron entry $2 of tenant $1; NULL leaves a column as it is. $10: whether next_run_at becomes $11.
UPDATE crons
SET expression     = COALESCE($3, expression),
    timezone       = COALESCE($4, timezone),
    overlap_policy = COALESCE($5, overlap_policy),
    missed_policy  = COALESCE($6, missed_policy),
    enabled        = COALESCE($7, enabled),
    template       = COALESCE($8, template),
    description    = COALESCE($9, description),
    next_run_at    = CASE WHEN $10 = 1 THEN $11 ELSE next_run_at END,
    updated_at     = $12
WHERE tenant = $1 AND name = $2
