-- Due jobs of kind $1 in queue $2 that are not promoted yet: those that a claim of $3 jobs at $4 may take. $5 and $6 as there.
-- `+ 0` keeps SQLite from preparing the statement anew for every value of the limit.
-- Differs from PostgreSQL: `json_each` compares lists, and no row is locked.
SELECT {columns of job}
FROM jobs AS j
WHERE j.state IN ('scheduled', 'retryable') AND j.run_at <= $4 AND j.kind = $1 AND j.queue = $2
  AND (j.expires_at IS NULL OR j.expires_at > $4)
  AND ($5 IS NULL OR j.tenant = $5)
  AND ($6 IS NULL OR j.runtime_tags IS NULL
       OR NOT EXISTS (SELECT 1 FROM json_each(j.runtime_tags) AS need
                      WHERE need.value NOT IN (SELECT has.value FROM json_each($6) AS has)))
ORDER BY j.priority DESC, j.seq
LIMIT $3 + 0
