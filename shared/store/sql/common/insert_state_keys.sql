-- Writes keys.
INSERT INTO state_keys {values: scope, name, content, version, updated_at, expires_at}
ON CONFLICT (scope, name) DO UPDATE
SET content = excluded.content, version = excluded.version, updated_at = excluded.updated_at, expires_at = excluded.expires_at
