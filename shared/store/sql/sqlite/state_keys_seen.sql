-- Versions of keys that are not forgotten at a time. $1: JSON [[scope, name], …], $2: the time.
-- Differs from PostgreSQL: json_each.
SELECT k.scope, k.name, k.version
FROM json_each($1) AS r
JOIN state_keys AS k ON k.scope = r.value ->> 0 AND k.name = r.value ->> 1
WHERE k.expires_at IS NULL OR k.expires_at > $2
