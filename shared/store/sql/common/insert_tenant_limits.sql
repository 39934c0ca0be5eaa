-- The limits of tenant $1: active jobs, waiting ones, scheduled ones, accepted ones per period; NULL is unlimited.
INSERT INTO tenant_limits (tenant, max_concurrency, max_queue_depth, max_scheduled, enqueue_rate, enqueue_period_ms, reason,
                           created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
ON CONFLICT (tenant) DO UPDATE
SET max_concurrency   = excluded.max_concurrency,
    max_queue_depth   = excluded.max_queue_depth,
    max_scheduled     = excluded.max_scheduled,
    enqueue_rate      = excluded.enqueue_rate,
    enqueue_period_ms = excluded.enqueue_period_ms,
    reason            = excluded.reason,
    updated_at        = excluded.updated_at
