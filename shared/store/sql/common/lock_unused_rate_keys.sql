-- At most $1 limits that no operator has set and no job names. A push that names a limit holds its row until it is
-- committed (lock_known_rate_keys), so that it is seen either here or by the delete that follows.
SELECT k.name
FROM rate_keys AS k
WHERE k.overridden = 0 AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.limit_key = k.name)
LIMIT $1
{lock skip}
