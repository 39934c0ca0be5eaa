-- Takes the idempotency key $1 for the request $2 until $4, unless it is taken at $3. Another transaction that takes it is
-- waited for.
INSERT INTO idempotency_keys (name, request, expires_at)
VALUES ($1, $2, $4)
ON CONFLICT (name) DO UPDATE
SET request    = excluded.request,
    expires_at = excluded.expires_at
WHERE idempotency_keys.expires_at <= $3
RETURNING name
