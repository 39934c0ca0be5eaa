-- Versions of keys that are not forgotten at a time. $1: scopes, $2: names, $3: the time.
-- Differs from SQLite: arrays.
SELECT k.scope, k.name, k.version
FROM unnest($1, $2) AS r (scope, name)
JOIN state_keys AS k ON k.scope = r.scope AND k.name = r.name
WHERE k.expires_at IS NULL OR k.expires_at > $3
