-- The limits of tenants: active jobs, waiting ones, scheduled ones, accepted ones per period; NULL is unlimited.
INSERT INTO tenant_limits (tenant, max_concurrency, max_queue_depth, max_scheduled, enqueue_rate, enqueue_period_ms, reason,
                           created_at, updated_at)
SELECT r.*, r.updated_at
FROM {rows: tenant, max_concurrency, max_queue_depth, max_scheduled, enqueue_rate, enqueue_period_ms, reason, updated_at}
WHERE true
ON CONFLICT (tenant) DO UPDATE
SET max_concurrency   = excluded.max_concurrency,
    max_queue_depth   = excluded.max_queue_depth,
    max_scheduled     = excluded.max_scheduled,
    enqueue_rate      = excluded.enqueue_rate,
    enqueue_period_ms = excluded.enqueue_period_ms,
    reason            = excluded.reason,
    updated_at        = excluded.updated_at
