-- Deletes at most $2 idempotency keys that are over at $1.
DELETE FROM idempotency_keys
WHERE name IN (SELECT k.name FROM idempotency_keys AS k WHERE k.expires_at <= $1 LIMIT $2)
