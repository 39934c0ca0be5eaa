-- Forgets limits that no job names. $1: JSON rows. Differs from PostgreSQL: json_each.
DELETE FROM rate_keys
WHERE name IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
  AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.limit_key = rate_keys.name)
