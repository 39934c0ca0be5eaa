-- Versions of keys that are not forgotten at $2.
SELECT k.scope, k.name, k.version
FROM {rows: scope, name}
JOIN state_keys AS k ON k.scope = r.scope AND k.name = r.name
WHERE k.expires_at IS NULL OR k.expires_at > $2
