-- Forgets limits that no job names. Differs from SQLite: an array.
DELETE FROM rate_keys
WHERE name = ANY($1)
  AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.limit_key = rate_keys.name)
