-- At most $1 limits that no operator has set and no job names.
-- Differs from PostgreSQL: there the rows are locked, and those that somebody else has are left out.
SELECT k.name
FROM rate_keys AS k
WHERE k.overridden = 0 AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.limit_key = k.name)
LIMIT $1
