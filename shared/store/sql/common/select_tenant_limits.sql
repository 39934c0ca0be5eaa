-- The limits of tenant $1, and its current counts.
SELECT t.tenant, t.max_concurrency, t.max_queue_depth, t.max_scheduled, t.enqueue_rate, t.enqueue_period_ms, t.reason, t.created_at,
       t.updated_at, t.window_at, t.enqueued
FROM tenant_limits AS t
WHERE t.tenant = $1
