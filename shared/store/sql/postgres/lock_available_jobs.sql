-- The next jobs of one kind and queue: highest priority first, then oldest. $5 tenant, $6 what the worker's runtime
-- has to offer: JSON; NULL matches all. $7 tenants that have as many active jobs as they may: JSON; NULL for none.
-- Paused jobs and those that are set aside because their limit is used up are not looked at.
-- Differs from SQLite: `jsonb` compares lists. Rows are locked, and those that another transaction holds are left out.
SELECT {columns of job}
FROM jobs AS j
WHERE j.state = 'available' AND j.held = 0 AND j.set_aside = 0 AND j.kind = $1 AND j.queue = $2
  AND (j.expires_at IS NULL OR j.expires_at > $4)
  AND ($5 IS NULL OR j.tenant = $5)
  AND ($6 IS NULL OR j.runtime_tags IS NULL OR j.runtime_tags::jsonb <@ $6::jsonb)
  AND ($7 IS NULL OR j.tenant IS NULL OR NOT $7::jsonb ? j.tenant)
ORDER BY j.priority DESC, j.seq
LIMIT $3
FOR UPDATE SKIP LOCKED
