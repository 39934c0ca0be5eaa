-- `+ 0` keeps SQLite from preparing the statement anew for every value of the limit.
-- The next jobs of one kind and queue: highest priority first, then oldest. $5 tenant, $6 what the worker's runtime
-- has to offer: JSON; NULL matches all. $7 tenants that have as many active jobs as they may: JSON; NULL for none.
-- Paused jobs and those that are set aside because their limit is used up are not looked at.
-- Differs from PostgreSQL: `json_each` compares lists, and no row is locked.
SELECT {columns of job}
FROM jobs AS j
WHERE j.state = 'available' AND j.held = 0 AND j.set_aside = 0 AND j.kind = $1 AND j.queue = $2
  AND (j.expires_at IS NULL OR j.expires_at > $4)
  AND ($5 IS NULL OR j.tenant = $5)
  AND ($6 IS NULL OR j.runtime_tags IS NULL
       OR NOT EXISTS (SELECT 1 FROM json_each(j.runtime_tags) AS need
                      WHERE need.value NOT IN (SELECT has.value FROM json_each($6) AS has)))
  AND ($7 IS NULL OR j.tenant IS NULL OR j.tenant NOT IN (SELECT shut.value FROM json_each($7) AS shut))
ORDER BY j.priority DESC, j.seq
LIMIT $3 + 0
