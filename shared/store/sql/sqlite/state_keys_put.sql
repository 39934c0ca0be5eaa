-- Writes keys. $1: JSON [[scope, name, content, version, updated_at, expires_at], …]. Differs from PostgreSQL: json_each.
INSERT INTO state_keys (scope, name, content, version, updated_at, expires_at)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5
FROM json_each($1) AS r WHERE true
ON CONFLICT (scope, name) DO UPDATE
SET content = excluded.content, version = excluded.version, updated_at = excluded.updated_at, expires_at = excluded.expires_at
