-- Deletes keys.
DELETE FROM state_keys
WHERE (scope, name) IN (SELECT r.scope, r.name FROM {rows: scope, name})
