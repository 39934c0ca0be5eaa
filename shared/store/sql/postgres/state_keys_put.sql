-- Writes keys. Differs from SQLite: an array per column.
INSERT INTO state_keys (scope, name, content, version, updated_at, expires_at)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6)
ON CONFLICT (scope, name) DO UPDATE
SET content = excluded.content, version = excluded.version, updated_at = excluded.updated_at, expires_at = excluded.expires_at
