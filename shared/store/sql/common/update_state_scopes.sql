-- Moves the versions of scopes.
UPDATE state_scopes
SET version = r.version, updated_at = r.at
FROM {rows: name, version, at}
WHERE state_scopes.name = r.name
