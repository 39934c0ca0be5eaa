-- The record of idempotency key $1, unless it has expired at $2.
SELECT name, request, pushed, answer FROM idempotency_keys WHERE name = $1 AND expires_at > $2
