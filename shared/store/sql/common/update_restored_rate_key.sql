-- The limit that jobs named last, in place of the operator's.
UPDATE rate_keys
SET overridden = 0, concurrency = $2, rate = $3, period_ms = $4, throttle_ms = $5, next_at = 0
WHERE name = $1
