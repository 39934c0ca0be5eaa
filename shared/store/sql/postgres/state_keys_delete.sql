-- Deletes keys. Differs from SQLite: an array per column.
DELETE FROM state_keys
USING unnest($1, $2) AS r (scope, name)
WHERE state_keys.scope = r.scope AND state_keys.name = r.name
