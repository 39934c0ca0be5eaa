-- Gives back the idempotency key $1 of a push that was refused.
DELETE FROM idempotency_keys WHERE name = $1
