-- An operator's limit in place of the one that jobs name. A new limit counts from now.
INSERT INTO rate_keys (name, overridden, concurrency, rate, period_ms, throttle_ms)
VALUES ($1, 1, $2, $3, $4, $5)
ON CONFLICT (name) DO UPDATE
SET overridden  = 1,
    concurrency = excluded.concurrency,
    rate        = excluded.rate,
    period_ms   = excluded.period_ms,
    throttle_ms = excluded.throttle_ms,
    next_at     = 0
