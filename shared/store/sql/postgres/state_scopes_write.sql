-- Moves the versions of scopes. Differs from SQLite: an array per column.
UPDATE state_scopes
SET version = r.version, updated_at = r.at
FROM unnest($1, $2, $3) AS r (name, version, at)
WHERE state_scopes.name = r.name
