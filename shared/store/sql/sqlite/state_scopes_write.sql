-- Moves the versions of scopes. $1: JSON [[name, version, updated_at], …]. Differs from PostgreSQL: json_each.
UPDATE state_scopes
SET version = r.value ->> 1, updated_at = r.value ->> 2
FROM json_each($1) AS r
WHERE state_scopes.name = r.value ->> 0
