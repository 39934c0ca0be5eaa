-- Sets an operator's configuration of a queue, which is created at $13 if it is unknown. A new limit counts from now.
INSERT INTO queues (name, config, max_depth, max_bytes, warn_at, concurrency, rate, period_ms, throttle_ms,
                    keep_completed_ms, keep_discarded_ms, keep_cancelled_ms, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (name) DO UPDATE
SET config            = excluded.config,
    max_depth         = excluded.max_depth,
    max_bytes         = excluded.max_bytes,
    warn_at           = excluded.warn_at,
    concurrency       = excluded.concurrency,
    rate              = excluded.rate,
    period_ms         = excluded.period_ms,
    throttle_ms       = excluded.throttle_ms,
    keep_completed_ms = excluded.keep_completed_ms,
    keep_discarded_ms = excluded.keep_discarded_ms,
    keep_cancelled_ms = excluded.keep_cancelled_ms,
    next_at           = 0
