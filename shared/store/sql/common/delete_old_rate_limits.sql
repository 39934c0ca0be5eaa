-- Forgets buckets and holds that have meant nothing since this time.
DELETE FROM rate_limits
WHERE as_of < $1 AND held_until < $1
RETURNING name
