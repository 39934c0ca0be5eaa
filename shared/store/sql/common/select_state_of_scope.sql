-- The version of a scope with its keys that are not forgotten at a time, by name; one row without a key when it has none.
SELECT s.version AS scope_version, k.scope, k.name, k.content, k.version, k.updated_at, k.expires_at
FROM state_scopes AS s
LEFT JOIN state_keys AS k ON k.scope = s.name AND (k.expires_at IS NULL OR k.expires_at > $2)
WHERE s.name = $1
ORDER BY k.name
