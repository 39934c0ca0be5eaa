UPDATE crons
--- update_cron
-- Changes a cron entry; NULL leaves a column as it is, and `moves` says whether next_run_at is written.
SET expression     = COALESCE(r.expression, crons.expression),
    timezone       = COALESCE(r.timezone, crons.timezone),
    overlap_policy = COALESCE(r.overlap_policy, crons.overlap_policy),
    missed_policy  = COALESCE(r.missed_policy, crons.missed_policy),
    enabled        = COALESCE(r.enabled, crons.enabled),
    template       = COALESCE(r.template, crons.template),
    description    = COALESCE(r.description, crons.description),
    next_run_at    = CASE WHEN r.moves = 1 THEN r.next_run_at ELSE crons.next_run_at END,
    updated_at     = r.updated_at
FROM {rows: tenant, name, expression, timezone, overlap_policy, missed_policy, enabled, template, description, moves, next_run_at, updated_at}
WHERE crons.tenant = r.tenant AND crons.name = r.name
--- update_cron_counts
-- Counts the jobs that cron entries made, with the last one; `last_error` says why the latest occurrence made none.
SET runs        = crons.runs + r.made,
    last_job_id = COALESCE(r.last_job_id, crons.last_job_id),
    last_run_at = CASE WHEN r.made > 0 THEN r.at ELSE crons.last_run_at END,
    last_error  = r.last_error
FROM {rows: tenant, name, made, last_job_id, at, last_error}
WHERE crons.tenant = r.tenant AND crons.name = r.name
--- update_cron_next_run
-- Moves the cron entry $2 of tenant $1 from the occurrence $3 to $4, unless a concurrent transaction has.
SET next_run_at = $4 WHERE tenant = $1 AND name = $2 AND next_run_at = $3
