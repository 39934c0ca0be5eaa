-- Forgets limits that no job names.
DELETE FROM rate_keys
WHERE name {in: names}
  AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.limit_key = rate_keys.name)
