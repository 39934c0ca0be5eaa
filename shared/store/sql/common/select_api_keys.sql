SELECT k.id, k.hash, k.old_hash, k.old_until, k.name, k.tenant, k.roles, k.acts_for, k.rate_per_minute, k.created_at,
       k.created_by, k.expires_at, k.revoked_at, k.last_used_at
FROM api_keys AS k
--- select_api_keys
-- Every key, the oldest first.
ORDER BY k.created_at, k.id
--- select_api_keys_by_hash
-- The keys whose secret, or the secret before it, has hash $1.
WHERE k.hash = $1 OR k.old_hash = $1
--- lock_api_key
-- Key $1, if it is tenant $2's (NULL: any).
WHERE k.id = $1 AND ($2 IS NULL OR k.tenant = $2)
{lock}
